// What can go wrong. That a command fails, runs out of time or is refused something is a result.

export class CaissonError extends Error {
  static code = "";
  constructor(detail = "", { status = 0, problem = {}, cause } = {}) {
    super(detail, cause === undefined ? undefined : { cause });
    this.name = new.target.name;
    this.code = problem.code ?? new.target.code;
    this.status = status;
    this.problem = problem;
  }
}

const kind = (code, base = CaissonError) => class extends base { static code = code; };

export class Invalid extends kind("invalid") {}
export class Unauthorized extends kind("unauthorized") {}
export class Forbidden extends kind("forbidden") {}
export class NotFound extends kind("not_found") {}
export class Exists extends kind("exists") {}
export class Stale extends kind("stale") {}
export class IsADirectory extends kind("is_directory") {}
export class NotADirectory extends kind("not_directory") {}
export class PermissionDenied extends kind("permission_denied") {}
export class NotText extends kind("not_text") {}
export class TooLarge extends kind("too_large") {}
export class NoMatch extends kind("no_match") {}
export class AmbiguousMatch extends kind("ambiguous_match") {}
export class Conflict extends kind("conflict") {}
export class Busy extends kind("busy") {}
/** A person is asked; `approval` is the id of the question. */
export class ApprovalRequired extends kind("approval_required") {
  get approval() { return this.problem.approval?.id ?? this.problem.approval; }
}
export class Denied extends kind("denied") {}
export class Unenforceable extends kind("unenforceable") {}
export class QuotaExceeded extends kind("quota") {}
/** Our own failure, never the command's. `retrySafe`: nothing was done, ask again. */
export class SandboxUnavailable extends kind("sandbox_unavailable") {
  get retrySafe() { return this.problem.retry_safe === true; }
}
export class BackendError extends kind("backend_error", SandboxUnavailable) {}
export class RepoAuth extends kind("repo_auth") {}
export class RepoUnreachable extends kind("repo_unreachable") {}
export class Expired extends kind("expired") {}

/** Of `check`: a command that did not end well. */
export class CommandError extends CaissonError {
  constructor(result) {
    super(result.describe());
    this.result = result;
  }
}
/** Of `check`: it ran out of time. */
export class CommandTimeout extends CommandError {}

const ALL = [Invalid, Unauthorized, Forbidden, NotFound, Exists, Stale, IsADirectory, NotADirectory, PermissionDenied, NotText, TooLarge,
  NoMatch, AmbiguousMatch, Conflict, Busy, ApprovalRequired, Denied, Unenforceable, QuotaExceeded, SandboxUnavailable, BackendError, RepoAuth,
  RepoUnreachable, Expired];
export const byCode = new Map(ALL.map((one) => [one.code, one]));

/** The exception for a problem object. */
export function errorOf(status, problem) {
  const Kind = byCode.get(problem.code) ?? (status >= 500 ? SandboxUnavailable : CaissonError);
  return new Kind(problem.detail ?? problem.title ?? `HTTP ${status}`, { status, problem });
}

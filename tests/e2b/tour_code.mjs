// tour_code.mjs - what a program does with `@e2b/code-interpreter`, unmodified: each line of output is one thing that held.
// Run by tests/e2b/sdk.py, which says where the package and the daemon are.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

const { Sandbox } = createRequire(`${process.env.E2B_PACKAGE}/`)('@e2b/code-interpreter')

const sandbox = await Sandbox.create({ envs: { GREETING: 'hi' }, allowInternetAccess: false })
const said = []
const first = await sandbox.runCode("import os\nprint(os.environ['GREETING'])\nx = 41", { onStdout: (m) => said.push(m.line) })
assert.deepEqual([first.logs.stdout, said, first.error], [['hi\n'], ['hi\n'], undefined])
const second = await sandbox.runCode('x += 1\nx')
assert.deepEqual([second.text, second.executionCount], ['42', 2])
const bad = await sandbox.runCode('1 / 0')
assert.deepEqual([bad.error.name, bad.error.value], ['ZeroDivisionError', 'division by zero'])
const host = await sandbox.runCode('class A:\n  def _repr_html_(self): return "<b>"\nA()')
assert.equal(host.results[0].html, '<b>')
console.log('code')

const context = await sandbox.createCodeContext({ cwd: '/tmp' })
assert.equal((await sandbox.runCode('import os; os.getcwd()', { context })).text, '/tmp')
assert.equal((await sandbox.runCode('x', { context })).error.name, 'NameError')
assert((await sandbox.listCodeContexts()).some((c) => c.id === context.id))
await sandbox.runCode('y = 1', { context })
await sandbox.restartCodeContext(context)
assert.equal((await sandbox.runCode('y', { context })).error.name, 'NameError')
await sandbox.removeCodeContext(context)
await assert.rejects(sandbox.runCode('y', { context }))
console.log('contexts')

await assert.rejects(sandbox.runCode('import time; time.sleep(60)', { timeoutMs: 1000 }))
assert.equal((await sandbox.runCode('x', { timeoutMs: 20000 })).text, '42')
console.log('interrupt')

await sandbox.kill()
console.log('end')
process.exit(0)

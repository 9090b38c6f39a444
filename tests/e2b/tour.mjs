// What a program does with the `e2b` package, unmodified: each line of output is one thing that held.
// Run by tests/e2b/sdk.py, which says where the package and the daemon are.
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const where = createRequire(process.env.E2B_PACKAGE + '/').resolve('e2b')
const { Sandbox, Template, waitForFile } = await import(pathToFileURL(where))
const bytes = (text) => new TextEncoder().encode(text)
const wait = (ms) => new Promise((done) => setTimeout(done, ms))
const until = async (holds) => {
  for (let i = 0; i < 100 && !(await holds()); i++) await wait(100)
  assert(await holds())
}
const held = (what) => console.log(what)

const sandbox = await Sandbox.create('base', { metadata: { tour: 'a b&c' }, envs: { GREETING: 'hi' }, allowInternetAccess: false })
assert.equal((await sandbox.getInfo()).metadata.tour, 'a b&c')
const page = await Sandbox.list({ query: { metadata: { tour: 'a b&c' } } }).nextItems()
assert.deepEqual(page.map((s) => s.sandboxId), [sandbox.sandboxId])
await sandbox.setTimeout(120_000)
held('life')

const result = await sandbox.commands.run('echo $GREETING; pwd; echo bad >&2')
assert.deepEqual([result.stdout, result.stderr], ['hi\n/home/user\n', 'bad\n'])
await assert.rejects(sandbox.commands.run('exit 3'), (e) => e.exitCode === 3)
await assert.rejects(sandbox.commands.run('sleep 9', { timeoutMs: 300 }))
const cat = await sandbox.commands.run('cat', { background: true, stdin: true })
await sandbox.commands.sendStdin(cat.pid, 'typed\n')
await until(() => cat.stdout === 'typed\n')
assert((await sandbox.commands.list()).some((p) => p.pid === cat.pid))
assert.equal(await sandbox.commands.kill(cat.pid), true)
assert.equal(await sandbox.commands.kill(1), false)
held('commands')

let shown = ''
const terminal = await sandbox.pty.create({ cols: 80, rows: 24, onData: (data) => { shown += new TextDecoder().decode(data) } })
await sandbox.pty.resize(terminal.pid, { cols: 91, rows: 24 })
await sandbox.pty.sendInput(terminal.pid, bytes('tput cols; exit\n'))
await terminal.wait()
assert(shown.includes('91'), shown)
held('terminal')

await sandbox.files.write('a/f.txt', 'one')
await sandbox.files.write([{ path: 'a/g', data: 'g' }, { path: 'a/h', data: bytes('h').buffer }])
assert.equal(await sandbox.files.read('a/f.txt'), 'one')
assert.deepEqual((await sandbox.files.list('a')).map((e) => e.name), ['f.txt', 'g', 'h'])
assert.equal(await sandbox.files.makeDir('a/d'), true)
assert.equal(await sandbox.files.makeDir('a/d'), false)
await sandbox.files.rename('a/g', 'a/d/g')
await sandbox.files.remove('a/h')
assert.deepEqual([await sandbox.files.exists('a/h'), await sandbox.files.exists('a/d/g')], [false, true])
const seen = []
const watch = await sandbox.files.watchDir('a', (event) => { seen.push(event.type) })
await sandbox.files.write('a/f.txt', 'two')
await until(() => seen.includes('write'))
await watch.stop()
held('files')

assert.equal(await (await fetch(await sandbox.downloadUrl('a/f.txt'))).text(), 'two')
held('signed')

await sandbox.commands.run('python3 -m http.server 8000', { background: true })
await until(async () => (await fetch(`https://${sandbox.getHost(8000)}/a/f.txt`)).status === 200)
held('host')

await (sandbox.pause ?? sandbox.betaPause).call(sandbox)
assert.equal(await sandbox.isRunning(), false)
await sandbox.connect()
assert.equal(await sandbox.isRunning(), true)
assert.equal((await fetch(`https://${sandbox.getHost(8000)}/a/f.txt`)).status, 200)
held('pause')

if (sandbox.createSnapshot) {
  const snapshot = await sandbox.createSnapshot()
  const copy = await Sandbox.create(snapshot.snapshotId, { allowInternetAccess: false })
  assert.equal(await copy.files.read('a/f.txt'), 'two')
  await copy.kill()
  assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), true)
  held('snapshot')
}
if (sandbox.fork) {
  const [fork] = await sandbox.fork()
  await fork.files.write('a/f.txt', 'fork')
  assert.equal(await sandbox.files.read('a/f.txt'), 'two')
  await fork.kill()
  held('fork')
}
if (Template && waitForFile) {
  const files = mkdtempSync('/run/tour-')
  writeFileSync(`${files}/f.txt`, 'copied')
  const template = Template({ fileContextPath: files }).fromBaseImage().copy('f.txt', 'to/').runCmd('cat to/f.txt to/f.txt >both')
    .setStartCmd('touch started; sleep 600', waitForFile('started'))
  const lines = []
  await Template.build(template, { alias: 'tour', cpuCount: 1, memoryMB: 512, onBuildLogs: (entry) => lines.push(entry.message) })
  assert(lines.some((line) => line.includes('RUN cat')))
  const built = await Sandbox.create('tour', { allowInternetAccess: false })
  assert.equal((await built.commands.run('cat both; ls started')).stdout, 'copiedcopiedstarted\n')
  await built.kill()
  rmSync(files, { recursive: true })
  held('template')
}
assert.equal((await sandbox.getMetrics()).length, 1)
assert.equal(await Sandbox.kill(sandbox.sandboxId), true)
assert.equal(await Sandbox.kill(sandbox.sandboxId), false)
held('end')

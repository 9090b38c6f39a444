// tour_more.mjs - volumes and secrets with the `e2b` package, unmodified: each line of output is one thing that held.
// Run by tests/e2b/sdk.py, which says where the package and the daemon are.
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

const { Sandbox, Secret, Volume } = createRequire(`${process.env.E2B_PACKAGE}/`)('e2b')

const volume = await Volume.create('tour')
assert((await Volume.list()).some((v) => v.volumeId === volume.volumeId))
await volume.makeDir('d/e', { force: true })
const written = await volume.writeFile('d/f.txt', 'hello')
assert.deepEqual([written.path, written.size, await volume.readFile('d/f.txt')], ['/d/f.txt', 5, 'hello'])
await volume.writeFile('d/f.txt', 'again', { force: true })
assert.deepEqual([await volume.exists('d/f.txt'), await volume.exists('d/g')], [true, false])
assert.deepEqual((await volume.list('/d')).map((e) => e.path).sort(), ['/d/e', '/d/f.txt'])
console.log('content')

const sandbox = await Sandbox.create({ volumeMounts: { '/mnt/data': volume }, allowInternetAccess: false })
assert.equal((await sandbox.commands.run('ls /mnt/data/d; echo inside >/mnt/data/out')).stdout, 'e\nf.txt\n')
assert.equal(await volume.readFile('out'), 'inside\n')
await sandbox.kill()
await volume.remove('d')
await assert.rejects(volume.readFile('d/f.txt'))
assert.deepEqual([await Volume.destroy(volume.volumeId), await Volume.destroy(volume.volumeId)], [true, false])
console.log('volumes')

const made = await Secret.create('tour-key', 'a value of it', { metadata: { hosts: 'api.example.org', inject: 'header:X-Key' } })
assert.deepEqual([made.name, made.version, made.metadata.hosts], ['tour-key', 1, 'api.example.org'])
assert.equal((await Secret.update('tour-key', 'another value')).version, 2)
assert.deepEqual([await Secret.exists('tour-key'), await Secret.exists('none')], [true, false])
const rules = { 'api.example.org': [{ transform: { headers: { 'X-Key': Secret.fill('tour-key') } } }] }
const bound = await Sandbox.create({ network: { rules } })
assert(!(await bound.commands.run('env')).stdout.includes('another'))
await bound.kill()
await assert.rejects(Secret.create('unbound', 'a value of it'), /bound to hosts/)
assert.deepEqual([await Secret.destroy('tour-key'), await Secret.destroy('tour-key')], [true, false])
console.log('secrets')
console.log('end')
process.exit(0)

// tour.mjs - the protocol's own TypeScript packages as clients of ours, as they come from their registry.
//
//   tour.mjs v1|v2 PACKAGES stdio WORKSPACE    with $CAISSON, the program
//   tour.mjs v1|v2 PACKAGES http URL           with $TOKEN
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const [which, packages, kind, where] = process.argv.slice(2)
const require = createRequire(`${packages}/x.js`)
const load = name => import(pathToFileURL(require.resolve(name)).href)
const modern = which === 'v2'
const P = modern ? '@modelcontextprotocol/client' : '@modelcontextprotocol/sdk'
const { Client } = await load(modern ? P : `${P}/client/index.js`)
const { StreamableHTTPClientTransport } = await load(modern ? P : `${P}/client/streamableHttp.js`)
const { StdioClientTransport } = await load(modern ? `${P}/stdio` : `${P}/client/stdio.js`)

const headers = { Authorization: `Bearer ${process.env.TOKEN}` }
const env = { CAISSON_SOCKET: process.env.CAISSON_SOCKET, PATH: process.env.PATH, HOME: process.env.HOME }
const transport = kind === 'http' ? new StreamableHTTPClientTransport(new URL(where), { requestInit: { headers } })
  : new StdioClientTransport({ command: process.env.CAISSON, args: ['mcp', '--workspace', where], env })
const options = { capabilities: { elicitation: { form: {} } } }
if (modern) options.versionNegotiation = { mode: 'auto' }
const client = new Client({ name: 'tour', version: '1' }, options)
const asked = []
const answer = async request => { asked.push(request.params.message); return { action: 'accept', content: { decision: 'allow once' } } }
if (modern) client.setRequestHandler('elicitation/create', answer)
else client.setRequestHandler((await load(`${P}/types.js`)).ElicitRequestSchema, answer)

const call = (name, args, more) => modern ? client.callTool({ name, arguments: args }, more) : client.callTool({ name, arguments: args }, undefined, more)
await client.connect(transport)
assert.equal(client.getServerVersion().name, 'caisson')
if (modern) assert.equal(client.getNegotiatedProtocolVersion(), '2026-07-28')
const tools = (await client.listTools()).tools.map(t => t.name)
assert.deepEqual(tools, ['bash', 'read', 'write', 'edit', 'glob', 'grep', 'process', 'git', 'workspace'])
const told = []
const done = await call('bash', { command: 'echo begun; sleep 1.3; echo hi' }, { onprogress: p => told.push(p) })
assert.deepEqual([done.structuredContent.exit_code, done.content[0].text], [0, 'begun\nhi\n'])
assert.equal(told[0]?.message, 'begun')
const file = `${which}-${kind}`
assert.equal((await call('write', { file_path: file, content: 'one\ntwo\n' })).structuredContent.bytes, 8)
assert.equal((await call('read', { file_path: `/work/${file}` })).structuredContent.text, 'one\ntwo\n')
const wrong = await call('read', { file_path: 'none' })
assert.ok(wrong.isError && wrong.content[0].text.includes('not_found'))
const touched = await call('bash', { command: `touch asked-${file}` })
assert.deepEqual([touched.structuredContent.exit_code, asked.length], [0, 1])
assert.ok(asked[0].includes(`touch asked-${file}`))
const stop = new AbortController()
setTimeout(() => stop.abort(), 1000)
await assert.rejects(call('bash', { command: 'sleep 68' }, { signal: stop.signal }))
let left
for (let i = 0; i < 100; i++) {
  left = (await call('bash', { command: "pgrep -x -f 'sleep 68' || true" })).content[0].text.trim()
  if (left === '[no output]') break
  await new Promise(r => setTimeout(r, 50))
}
assert.equal(left, '[no output]')
await client.close()
console.log('end')
process.exit(0)

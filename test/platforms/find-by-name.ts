// A name that only the machine's name server has, looked up as the reconciler does: `node find-by-name.ts NAME ADDRESS`
// is that name server on ADDRESS, connects to NAME, and prints the peer's address. Run it in a network of its own.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { replaceNameLookup } from '../../infra/runtime/node/name-lookup.ts';
import { print } from '../../infra/runtime/node/process.ts';
import { startNameServer } from '../hostile/name-server.ts';

const [name = '', address = ''] = process.argv.slice(2);
const nameServer = await startNameServer('postgres.team.svc.cluster.local', address, 53);
const server = createServer((socket) => socket.end()).listen(0, address);
await once(server, 'listening');
replaceNameLookup();
const socket = connect((server.address() as AddressInfo).port, name);
await once(socket, 'connect');
print(`${socket.remoteAddress}`);
socket.destroy();
server.close();
nameServer.stop();

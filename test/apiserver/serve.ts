// An API server in a process of its own, which a test may kill: prints how it is reached.
import { startEmbedded } from './servers.ts';

const [file = ':memory:'] = process.argv.slice(2);
const { server, tls, token } = await startEmbedded({ file });
console.log(JSON.stringify({ url: server.url, ca: tls.ca, token }));

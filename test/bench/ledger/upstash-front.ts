// A process for the stand-in of Upstash, so that its CPU is measured apart.
import { startUpstash } from '../../support/upstash.ts';

const [address = ''] = process.argv.slice(2);
const { url } = await startUpstash({ connection: JSON.parse(address) });
process.on('disconnect', () => process.exit(0));
process.send?.({ url });

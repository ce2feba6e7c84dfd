// The sample upstream as a program: it replaces a provider in the quickstart.
import { SampleUpstreamEnvironment } from '../../runtime/config/environments.ts';
import { readEnvironment } from '../../runtime/config/variable.ts';
import { main, print } from '../../runtime/node/process.ts';
import { createSampleUpstream } from '../local/sample-upstream/server.ts';

main(async () => {
  const { PORT: port, HOST: host, SAMPLE_KEY: key } = readEnvironment(SampleUpstreamEnvironment, process.env);
  const { url, close } = await createSampleUpstream({ port, host, key });
  print(`the sample upstream listens on ${url}`);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void close());
});

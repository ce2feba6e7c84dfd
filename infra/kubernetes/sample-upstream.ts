// The sample upstream as a program: stands in for a provider in the quickstart.
import { SampleUpstreamEnvironment } from '../config/environments.ts';
import { readEnvironment } from '../config/variable.ts';
import { createSampleUpstream } from '../local/upstream/server.ts';
import { main, print } from '../node/process.ts';

main(async () => {
  const { PORT: port, HOST: host, SAMPLE_KEY: key } = readEnvironment(SampleUpstreamEnvironment, process.env);
  const { url, close } = await createSampleUpstream({ port, host, key });
  print(`the sample upstream listens on ${url}`);
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => void close());
});

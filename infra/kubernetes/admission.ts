// The admission function as a Node process: plain Kubernetes (HTTPS by itself) and Knative (HTTP behind its ingress).
import { readFileSync } from 'node:fs';
import { createMetrics } from '#adapters/metrics.ts';
import { createAdmission } from '../../functions/admission/app.ts';
import { openApi } from '../api-access.ts';
import { AdmissionEnvironment, readEnvironment } from '../env.ts';
import { nodeDependencies } from '../node.ts';
import { main, processLog, runServer } from '../process.ts';

main(async () => {
  const environment = readEnvironment(AdmissionEnvironment, process.env);
  const { TLS_CERT_FILE: cert, TLS_KEY_FILE: key, PATH_SECRETS: pathSecrets, OWN_USERS: own } = environment;
  const log = processLog('admission', environment.LOG_LEVEL);
  const { cluster, close } = await openApi(environment);
  const app = createAdmission({
    ...nodeDependencies(),
    cluster,
    log,
    metrics: createMetrics(),
    ...(own === undefined ? {} : { own }),
    ...(pathSecrets === undefined ? {} : { pathSecrets }),
  });
  const tls = cert === undefined || key === undefined ? {} : { tls: { cert: read(cert), key: read(key) } };
  const server = { fetch: app.fetch, port: environment.PORT, host: environment.HOST, ...tls };
  await runServer({ name: 'admission', log, server, close });
});

const read = (file: string) => readFileSync(file, 'utf8');

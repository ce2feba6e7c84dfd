// The admission function as a Node process: plain Kubernetes (HTTPS by itself) and Knative (HTTP behind its ingress).
import { createMetrics } from '#adapters/metrics.ts';
import { createAdmission } from '../../functions/admission/app.ts';
import { AdmissionEnvironment } from '../config/environments.ts';
import { readEnvironment } from '../config/variable.ts';
import { openApi } from '../node/api-access.ts';
import { nodeDependencies } from '../node/platform.ts';
import { main, processLog, runServer } from '../node/process.ts';
import { openTraces } from '../node/traces.ts';
import { createHint } from '../triggers/hint.ts';
import { createReviewRecord } from '../triggers/review-record.ts';
import { followCertificate, readCertificate } from './certificate.ts';

main(async () => {
  const environment = readEnvironment(AdmissionEnvironment, process.env);
  const { TLS_CERT_FILE: cert, TLS_KEY_FILE: key, PATH_SECRETS: pathSecrets, OWN_USERS: own } = environment;
  const { RECONCILE_URL: reconcile, RECONCILE_TOKEN: [token] = [] } = environment;
  const ownLog = processLog('admission', environment.LOG_LEVEL);
  const traces = await openTraces(environment, 'admission', ownLog);
  const log = traces.logged(ownLog);
  const files = cert === undefined || key === undefined ? undefined : { cert, key };
  const tls = files === undefined ? {} : { tls: readCertificate(files) };
  const { cluster, close: closeApi } = await openApi(environment);
  const metrics = createMetrics();
  const hint =
    reconcile === undefined ? undefined : createHint({ address: reconcile, token, send: traces.sent(fetch) });
  const app = createAdmission({
    ...nodeDependencies(),
    cluster,
    ...(own === undefined ? {} : { own }),
    pathSecrets,
    record: createReviewRecord({ log, metrics, hint }),
  });
  const close = async () => {
    await traces.close();
    await closeApi();
  };
  const server = { fetch: app.fetch, port: environment.PORT, host: environment.HOST, traces, ...tls };
  const served = await runServer({ log, server, metrics: { ...metrics, port: environment.METRICS_PORT }, close });
  if (files !== undefined) followCertificate(files, served, log);
});

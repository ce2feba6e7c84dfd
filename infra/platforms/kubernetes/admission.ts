// The admission webhook as a Node process: on plain Kubernetes (with HTTPS) and Knative (HTTP behind the ingress).
import { createAdmission } from '../../../functions/admission/app.ts';
import { AdmissionEnvironment } from '../../runtime/config/environments.ts';
import { readEnvironment } from '../../runtime/config/variable.ts';
import { openApi } from '../../runtime/node/api-access.ts';
import { MAX_CONNECTIONS, main, openFunction } from '../../runtime/node/process.ts';
import { createReadiness } from '../../runtime/node/readiness.ts';
import { createReviewRecord } from '../../runtime/triggers/review-record.ts';
import { createTrigger } from '../../runtime/triggers/trigger.ts';
import { followCertificate, readCertificate } from './certificate.ts';

/** Concurrent reads of Secrets and pages of VirtualKeys, of megabytes each: a Pod has little memory. */
const MAX_READS = 4;

main(async () => {
  const environment = readEnvironment(AdmissionEnvironment, process.env);
  const { TLS_CERT_FILE: cert, TLS_KEY_FILE: key, PATH_SECRETS: pathSecrets, OWN_USERS: own } = environment;
  const { RECONCILE_URL: reconcile, RECONCILE_TOKEN: [token] = [] } = environment;
  const { run, ...parts } = await openFunction('admission', environment);
  const { cluster, close } = await openApi(environment, { maxReads: MAX_READS });
  const trigger =
    reconcile === undefined ? undefined : createTrigger({ address: reconcile, token, send: parts.traces.sent(fetch) });
  const { fetch: review } = createAdmission({
    ...parts,
    cluster,
    pathSecrets,
    record: createReviewRecord({ ...parts, trigger }),
    secretPrefixes: environment.SECRET_METADATA_PREFIXES ?? [],
    readiness: createReadiness(cluster, parts.clock),
    ...(own === undefined ? {} : { exemptUsers: own }),
  });
  const files = cert === undefined || key === undefined ? undefined : { cert, key };
  const served = await run(
    { fetch: review, maxConnections: MAX_CONNECTIONS, ...(files && { tls: readCertificate(files) }) },
    close,
  );
  if (files !== undefined) followCertificate(files, served, parts.log);
});

// What is read from an environment, and what is refused?
import { expect, test } from 'vitest';
import { AdmissionBindings } from '../bindings.ts';
import { AdmissionEnvironment, ReconcileEnvironment } from '../environments.ts';
import { readEnvironment } from '../variable.ts';

const SEGMENT = 'an-unguessable-segment';

const read = (environment: Readonly<Record<string, string>>) =>
  readEnvironment(ReconcileEnvironment, {
    KUBECONFIG: '/dev/null',
    RECONCILE_TOKEN: 'a-token-of-tests',
    ...environment,
  });

test("without ADMISSION_SERVICE the certificate is somebody else's", () => {
  expect(read({}).ADMISSION_SERVICE).toBeUndefined();
  expect(read({ ADMISSION_SERVICE: '' }).ADMISSION_SERVICE).toBeUndefined();
  const service = { namespace: 'gateway-operator', name: 'admission' };
  expect(read({ ADMISSION_SERVICE: 'gateway-operator/admission' }).ADMISSION_SERVICE).toEqual(service);
});

test.each([
  ['ADMISSION_SERVICE', 'admission', 'is not NAMESPACE/NAME'],
  ['ADMISSION_SERVICE', 'a/b/c', 'is not NAMESPACE/NAME'],
  ['RETAIN_DAYS', '29', 'is neither a number of days, at least 30, nor `forever`'],
  ['SECRET_METADATA_PREFIXES', 'example.com/', 'is not a list of domains, as in example.com,example.org'],
  ['SECRET_METADATA_PREFIXES', '*', 'is not a list of domains, as in example.com,example.org'],
])('%s=%s is refused: it %s', (name, value, problem) => {
  expect(() => read({ [name]: value })).toThrow(`${name}="${value}": ${problem}`);
});

test.each([
  's3://',
  's3://b',
  's3://Bucket/x',
  's3://bucket/ü',
  's3://bucket//x',
  'file://folder',
  'file:///',
  'https://bucket',
])('ARCHIVE_URL=%s is refused', (url) => {
  expect(() => read({ ARCHIVE_URL: url, AWS_REGION: 'eu-central-1' })).toThrow(
    `ARCHIVE_URL="${url}": is neither s3://BUCKET/PREFIX, with letters, digits, -, ., _ and = in the prefix, nor file:///FOLDER`,
  );
});

test('an archive is a bucket, with or without a prefix, or a folder', () => {
  const bucket = { type: 'bucket', bucket: 'ledger.rows' };
  for (const [url, address] of [
    ['s3://ledger.rows', { ...bucket, url: 's3://ledger.rows', prefix: '' }],
    ['s3://ledger.rows/a/b=c/', { ...bucket, url: 's3://ledger.rows/a/b=c', prefix: 'a/b=c' }],
    ['file:///var/lib/archive/', { type: 'folder', url: 'file:///var/lib/archive' }],
  ] as const)
    expect(read({ ARCHIVE_URL: url, AWS_REGION: 'eu-central-1' }).ARCHIVE_URL).toEqual(address);
  expect(read({ AWS_ACCESS_KEY_ID: 'AKIA' }).ARCHIVE_URL).toBeUndefined();
});

test('a bucket needs its region and a whole access key, and no message has the secret', () => {
  const environment = { ARCHIVE_URL: 's3://bucket', AWS_SECRET_ACCESS_KEY: 'a-secret' };
  expect(() => read(environment)).toThrow(`the environment is not right:
  AWS_REGION is not set: ARCHIVE_URL is a bucket: name its region, such as eu-central-1
  AWS_SECRET_ACCESS_KEY goes together with AWS_ACCESS_KEY_ID: set both, or none to use the role of the Pod`);
  expect(read({ ARCHIVE_URL: 's3://bucket', AWS_ENDPOINT_URL_S3: 'http://minio:9000' }).AWS_REGION).toBeUndefined();
});

test('everything that is wrong is said together, and no secret with it', () => {
  const environment = {
    PORT: '65536',
    LOG_LEVEL: 'loud',
    PATH_SECRETS: 'short',
    RECONCILE_URL: 'reconcile',
    TLS_CERT_FILE: '/tls.crt',
  };
  expect(() => readEnvironment(AdmissionEnvironment, environment)).toThrow(`the environment is not right:
  PORT="65536": is not a port
  LOG_LEVEL="loud": is none of info, warn, error
  TLS_CERT_FILE="/tls.crt": is not a file that can be read
  PATH_SECRETS needs 16 to 128 letters, digits, -, ., _ or ~ in each segment
  RECONCILE_URL="reconcile": is not an http:// or https:// address
  KUBECONFIG is not set: name a kubeconfig file, or run in a Pod of a cluster
  RECONCILE_TOKEN is not set: RECONCILE_URL needs it: name the token that reconcile asks for
  TLS_KEY_FILE is not set: goes together with TLS_CERT_FILE: set both, or none`);
});

test('what is set is read, what is empty or absent is as written down', () => {
  const environment = {
    KUBERNETES_SERVICE_HOST: '10.0.0.1',
    PATH_SECRETS: SEGMENT,
    PORT: '',
    OWN_USERS: ' a, b,',
    HOST: '127.0.0.1',
    OTHER: 'x',
  };
  expect(readEnvironment(AdmissionEnvironment, environment)).toEqual({
    PORT: 8080,
    HOST: '127.0.0.1',
    METRICS_PORT: 9464,
    LOG_LEVEL: 'info',
    KUBERNETES_SERVICE_HOST: '10.0.0.1',
    KUBERNETES_SERVICE_PORT: 443,
    PATH_SECRETS: [SEGMENT],
    OWN_USERS: ['a', 'b'],
    OTEL_TRACES_SAMPLER: 'parentbased_always_on',
    OTEL_TRACES_SAMPLER_ARG: 1,
  });
});

test('a binding that must be there, or is no text, is named', () => {
  const bindings = { API_SERVER: 'http://api', PATH_SECRETS: {} };
  expect(() => readEnvironment(AdmissionBindings, bindings)).toThrow(`the environment is not right:
  API_SERVER="http://api": is not an https:// address
  API_TOKEN is not set: it has no default
  RECONCILE_TOKEN is not set: it has no default
  PATH_SECRETS is not a text`);
});

// What does reconcile read about certificates, and what does it refuse?
import { expect, test } from 'vitest';
import { ReconcileEnvironment, readEnvironment } from './env.ts';

const read = (environment: Readonly<Record<string, string>>) =>
  readEnvironment(ReconcileEnvironment, { KUBECONFIG: '/dev/null', ...environment });

test("without ADMISSION_SERVICE the certificate is somebody else's; with it there is a Secret, a name of the webhooks, and a lifetime", () => {
  expect(read({}).ADMISSION_SERVICE).toBeUndefined();
  expect(read({ ADMISSION_SERVICE: '' }).ADMISSION_SERVICE).toBeUndefined();
  expect(read({ ADMISSION_SERVICE: 'gateway-operator/admission' })).toMatchObject({
    ADMISSION_SERVICE: { namespace: 'gateway-operator', name: 'admission' },
    ADMISSION_SECRET: 'admission-tls',
    ADMISSION_WEBHOOKS: 'gateway-operator',
    CERTIFICATE_LIFETIME: 90 * 86_400_000,
  });
});

test.each([
  ['ADMISSION_SERVICE', 'admission', 'is not NAMESPACE/NAME'],
  ['ADMISSION_SERVICE', 'a/b/c', 'is not NAMESPACE/NAME'],
  ['ADMISSION_SECRET', 'Admission TLS', 'is not a name'],
  ['CERTIFICATE_LIFETIME', '59m', 'is not a duration of at least 1h'],
  ['CERTIFICATE_LIFETIME', '3 months', 'is not a duration of at least 1h'],
])('%s=%s is refused: it %s', (name, value, problem) => {
  expect(() => read({ [name]: value })).toThrow(`${name}="${value}": ${problem}`);
});

test('a lifetime of an hour is the shortest', () => {
  expect(read({ CERTIFICATE_LIFETIME: '1h' }).CERTIFICATE_LIFETIME).toBe(3_600_000);
});

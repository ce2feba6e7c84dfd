// Is admission's certificate always there, always trusted, and never in anybody's way?
import { expect, test } from 'vitest';
import {
  createCertificateBed as createBed,
  DAY,
  type Entry,
  HOST,
  HOUR,
  MINUTE,
  NAMESPACE,
  START,
} from '../../test/reconcile/certificates.ts';
import { bundle, data, expectGood, started, sweeps, writes } from '../../test/reconcile/good-certificate.ts';

test('the first sweep issues a certificate for the name of the Service, and both configurations trust it', async () => {
  const bed = await started();
  expect(Object.keys(data(bed)).sort()).toEqual(['ca.crt', 'ca.key', 'previous-ca.crt', 'tls.crt', 'tls.key']);
  expect(bed.secret()).toMatchObject({ type: 'kubernetes.io/tls', metadata: { namespace: NAMESPACE } });
  const serving = bed.serving();
  expect(serving && bed.issuer.inspect(serving, [HOST])).toEqual({ from: START - HOUR, until: START + 365 * DAY });
  const authority = { ca: serving?.ca ?? '', cert: serving?.ca ?? '', key: atob(data(bed)['ca.key'] ?? '') };
  expect(bed.issuer.inspect(authority, [])).toEqual({ from: START - HOUR, until: START + 3650 * DAY });
  await expectGood(bed);
});

test('a certificate may come before the webhook configurations, and they before it', async () => {
  const bed = createBed();
  await bed.sweep();
  expect(bed.serving()).toBeDefined();
  await bed.applyHooks();
  expect((await bed.sweep()).actions).toEqual(['TrustAuthorities', 'TrustAuthorities']);
  bed.forgive();
  await expectGood(bed);
});

test('at two thirds of its life the same CA signs another one: no configuration has to change', async () => {
  const bed = await started();
  const [first, hooks] = [bed.serving(), [bed.hook(0), bed.hook(1)]];
  bed.clock.pass(243 * DAY);
  expect(await bed.sweep()).toEqual({ actions: [] });
  bed.clock.pass(DAY);
  expect(await bed.sweep()).toEqual({ actions: ['IssueCertificate', 'WriteCertificate'] });
  expect(bed.serving()).toMatchObject({ ca: first?.ca });
  expect(bed.serving()?.cert).not.toBe(first?.cert);
  expect([bed.hook(0), bed.hook(1)]).toEqual(hooks);
  await expectGood(bed);
});

test('a new CA is trusted before it serves, and the one before it until the next renewal', async () => {
  const bed = await started();
  const before = bed.serving()?.ca;
  await bed.removeSecret();
  expect((await bed.sweep()).actions).toEqual([
    'IssueCertificate',
    'TrustAuthorities',
    'TrustAuthorities',
    'WriteCertificate',
  ]);
  const now = bed.serving()?.ca;
  expect(now).not.toBe(before);
  bed.clock.pass(243 * DAY);
  await bed.sweep();
  for (const index of [0, 1] as const) expect(bundle(bed, index)).toEqual([before, now]);
  bed.clock.pass(DAY);
  await bed.sweep();
  for (const index of [0, 1] as const) expect(bundle(bed, index)).toEqual([now]);
  await expectGood(bed);
});

test('in fourteen years of sweeps there is always a certificate that everybody trusts, and never a pile of old ones', async () => {
  const bed = await started();
  const authorities = new Set<string>();
  let most = 0;
  let shortest = Number.POSITIVE_INFINITY;
  for (const end = START + 14 * 365 * DAY; bed.clock.now() < end; bed.clock.pass(4 * DAY)) {
    await bed.sweep();
    const { secret } = await bed.view();
    most = Math.max(most, bundle(bed, 0).length);
    shortest = Math.min(shortest, (secret?.serving?.until ?? 0) - bed.clock.now());
    authorities.add(secret?.serving?.ca ?? '');
  }
  expect(bed.complaints()).toEqual([]);
  expect(most).toBe(2);
  expect(shortest / DAY).toBeGreaterThan(117);
  // Renewed at two thirds of ten years, by the renewal that is due then.
  expect(authorities.size).toBe(3);
  expect(bed.issued()).toBe(21);
});

test('a Secret that cannot be written never costs the trust in what is shown, however often it fails', async () => {
  const bed = await started();
  const shown = bed.serving()?.ca ?? '';
  await bed.removeSecret();
  bed.onCall = ({ verb }) => (verb === 'create' ? 'forbidden' : undefined);
  for (let count = 0; count < 30; count += 1) {
    expect((await bed.sweep()).failed).toContain('forbidden');
    bed.clock.pass(MINUTE);
  }
  expect(bundle(bed, 0)).toContain(shown);
  expect(bundle(bed, 0).length).toBe(4);
  bed.onCall = () => undefined;
  await bed.sweep();
  expect(bundle(bed, 1)).toContain(shown);
  await sweeps(bed);
  await expectGood(bed);
});

test('a configuration that lost its CA, or is new, is mended', async () => {
  const bed = await started();
  await bed.editHook(1, ({ clientConfig: { caBundle: _, ...rest }, ...entry }) => ({ ...entry, clientConfig: rest }));
  bed.forgive();
  expect((await bed.sweep()).actions).toEqual(['TrustAuthorities']);
  expect(bundle(bed, 1)).toEqual([bed.serving()?.ca]);
  bed.forgive();
  await expectGood(bed);
});

test('entries that call somebody else, and every other field, stay as they are', async () => {
  const bed = createBed();
  await bed.applyHooks();
  const foreign = {
    name: 'other.example.com',
    clientConfig: { url: 'https://other.example.com/', caBundle: 'b3RoZXI=' },
  };
  const [ours] = bed.hook(0).webhooks as Entry[];
  await bed.cluster.patch(
    { group: 'admissionregistration.k8s.io', version: 'v1', plural: 'mutatingwebhookconfigurations', kind: '' },
    undefined,
    'gateway-operator',
    { webhooks: [foreign, ours] },
  );
  await bed.sweep();
  const { caBundle, ...clientConfig } = (bed.hook(0).webhooks as Entry[])[1]?.clientConfig ?? {};
  expect(caBundle).toBeTypeOf('string');
  expect(bed.hook(0).webhooks).toEqual([foreign, { ...ours, clientConfig: { ...clientConfig, caBundle } }]);
  expect(clientConfig).toEqual(ours?.clientConfig);
});

test("a Secret of cert-manager, or one made by hand, is never written to, and its CA is nobody's business of ours", async () => {
  const { issuer, clock } = createBed();
  const validity = { from: START - DAY, until: START + 30 * DAY };
  const authority = await issuer.issueAuthority({ name: 'Theirs', ...validity });
  const pair = await issuer.issue({ authority, names: [HOST], ...validity });
  for (const annotations of [{ 'cert-manager.io/certificate-name': 'admission' }, {}]) {
    const bed = createBed();
    await bed.applyHooks();
    const stringData = { 'ca.crt': pair.ca, 'tls.crt': pair.cert, 'tls.key': pair.key };
    await bed.cluster.create(
      { group: '', version: 'v1', plural: 'secrets', kind: 'Secret' },
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'admission-tls', namespace: NAMESPACE, annotations },
        stringData,
      },
    );
    const before = writes(bed);
    for (let day = 0; day < 29; day += 1, bed.clock.pass(DAY)) await bed.sweep();
    expect(writes(bed)).toBe(before);
    const warned = bed.log.lines.filter(({ level }) => level === 'warn').map(({ message }) => message);
    if ('cert-manager.io/certificate-name' in annotations) expect(warned).toEqual([]);
    else expect(warned[0]).toContain('delete it, and reconcile issues one and renews it');
    await bed.removeSecret();
    await bed.sweep();
    expect(bed.serving()).toBeDefined();
  }
  expect(clock.now()).toBe(START);
});

test('a Secret of ours that cert-manager takes over is its own from then on', async () => {
  const bed = await started();
  await bed.editSecret({ metadata: { annotations: { 'cert-manager.io/certificate-name': 'admission' } } });
  const before = writes(bed);
  bed.clock.pass(250 * DAY);
  expect(await bed.sweep()).toEqual({ actions: [] });
  expect(writes(bed)).toBe(before);
});

test('a configuration that cert-manager injects into is left to it', async () => {
  const bed = createBed();
  await bed.applyHooks();
  const resource = { group: 'admissionregistration.k8s.io', version: 'v1', kind: '' };
  const annotations = { 'cert-manager.io/inject-ca-from': 'gateway-operator/admission' };
  await bed.cluster.patch({ ...resource, plural: 'mutatingwebhookconfigurations' }, undefined, 'gateway-operator', {
    metadata: { annotations },
  });
  await bed.sweep();
  expect([bundle(bed, 0).length, bundle(bed, 1).length]).toEqual([0, 1]);
});

test('another name of the Service is a reason for another certificate, of the same CA', async () => {
  const bed = await started();
  const before = bed.serving()?.ca;
  await bed.sweep({ ...bed.terms, service: { namespace: NAMESPACE, name: 'other' } });
  expect(bed.serving()).toBeUndefined();
  await bed.sweep();
  expect(bed.serving()?.ca).toBe(before);
});

test('a dry run says that a certificate comes and why, and no key', async () => {
  const bed = createBed();
  const row = { action: 'IssueCertificate', kind: 'Secret', namespace: NAMESPACE, name: 'admission-tls' };
  expect(await bed.plan()).toEqual([{ ...row, why: 'there is no certificate' }]);
  expect(writes(bed)).toBe(0);
  await bed.sweep();
  expect(await bed.plan()).toEqual([]);
  expect(JSON.stringify(bed.log.lines)).not.toContain('BEGIN');
});

test('a sweep of the function keeps the certificate and says so, a hint does not, and a dry run only tells', async () => {
  const bed = createBed();
  const hint = {
    headers: { 'ce-type': 'dev.gateway-operator.hint', 'ce-specversion': '1.0' },
    body: JSON.stringify({ kind: 'VirtualKey', namespace: 'default', name: 'chat' }),
  };
  expect(JSON.parse(await bed.post('', hint))).not.toHaveProperty('certificate');
  const plan = await bed.post('?dry-run=true', { headers: { accept: 'text/plain' } });
  expect(plan).toBe('+ IssueCertificate Secret gateway-operator/admission-tls: there is no certificate\n');
  expect(bed.secret()).toBeUndefined();
  expect(JSON.parse(await bed.post())).toMatchObject({
    certificate: { actions: ['IssueCertificate', 'WriteCertificate'] },
  });
  expect(JSON.parse(await bed.post())).not.toHaveProperty('certificate');
});

// The certificate of the admission webhook: it always exists, is always trusted, and no Secret of others is changed.
import { expect, test } from 'vitest';
import {
  createCertificateHarness as createHarness,
  DAY,
  type Entry,
  HOST,
  HOUR,
  MINUTE,
  NAMESPACE,
  START,
} from '../../../test/reconcile/certificates.ts';
import { bundle, data, expectGood, resyncs, started, writes } from '../../../test/reconcile/good-certificate.ts';
import { CONFIGURATION_NAME, WEBHOOK_CONFIGURATIONS } from '../certificates/objects.ts';

test('the first resync issues a certificate for the name of the Service, and both configurations trust it', async () => {
  const harness = await started();
  expect(Object.keys(data(harness)).sort()).toEqual(['ca.crt', 'ca.key', 'previous-ca.crt', 'tls.crt', 'tls.key']);
  expect(harness.secret()).toMatchObject({ type: 'kubernetes.io/tls', metadata: { namespace: NAMESPACE } });
  const serving = harness.serving();
  expect(serving && harness.issuer.inspect(serving, [HOST])).toEqual({ from: START - HOUR, until: START + 365 * DAY });
  const authority = { ca: serving?.ca ?? '', cert: serving?.ca ?? '', key: atob(data(harness)['ca.key'] ?? '') };
  expect(harness.issuer.inspect(authority, [])).toEqual({ from: START - HOUR, until: START + 3650 * DAY });
  await expectGood(harness);
});

test('the certificate and the webhook configurations may be created in any order', async () => {
  const harness = createHarness();
  await harness.resync();
  expect(harness.serving()).toBeDefined();
  expect(harness.log.lines.map(({ message }) => message)).toEqual(
    expect.arrayContaining(
      WEBHOOK_CONFIGURATIONS.map(({ kind }) => expect.stringContaining(`${kind} gateway-operator does not exist`)),
    ),
  );
  await harness.applyHooks();
  expect((await harness.resync()).actions).toEqual(['TrustAuthorities', 'TrustAuthorities']);
  harness.forgive();
  await expectGood(harness);
});

test('after two thirds of its lifetime the same CA signs a new certificate: no configuration changes', async () => {
  const harness = await started();
  const [first, hooks] = [harness.serving(), [harness.hook(0), harness.hook(1)]];
  harness.clock.pass(243 * DAY);
  expect(await harness.resync()).toEqual({ actions: [] });
  harness.clock.pass(DAY);
  expect(await harness.resync()).toEqual({ actions: ['IssueCertificate', 'WriteCertificate'] });
  expect(harness.serving()).toMatchObject({ ca: first?.ca });
  expect(harness.serving()?.cert).not.toBe(first?.cert);
  expect([harness.hook(0), harness.hook(1)]).toEqual(hooks);
  await expectGood(harness);
});

test('a new CA is trusted before it serves, and the previous one until the next renewal', async () => {
  const harness = await started();
  const before = harness.serving()?.ca;
  await harness.removeSecret();
  expect((await harness.resync()).actions).toEqual([
    'IssueCertificate',
    'TrustAuthorities',
    'TrustAuthorities',
    'WriteCertificate',
  ]);
  const now = harness.serving()?.ca;
  expect(now).not.toBe(before);
  harness.clock.pass(243 * DAY);
  await harness.resync();
  for (const index of [0, 1] as const) expect(bundle(harness, index)).toEqual([before, now]);
  harness.clock.pass(DAY);
  await harness.resync();
  for (const index of [0, 1] as const) expect(bundle(harness, index)).toEqual([now]);
  await expectGood(harness);
});

test('in fourteen years of resyncs there is always a trusted certificate, and the number of old CAs is bounded', async () => {
  const harness = await started();
  const authorities = new Set<string>();
  let max = 0;
  let shortest = Number.POSITIVE_INFINITY;
  for (const end = START + 14 * 365 * DAY; harness.clock.now() < end; harness.clock.pass(4 * DAY)) {
    await harness.resync();
    const { secret } = await harness.view();
    max = Math.max(max, bundle(harness, 0).length);
    shortest = Math.min(shortest, (secret?.serving?.until ?? 0) - harness.clock.now());
    authorities.add(secret?.serving?.ca ?? '');
  }
  expect(harness.complaints()).toEqual([]);
  expect(max).toBe(2);
  expect(shortest / DAY).toBeGreaterThan(117);
  // Renewed at two thirds of ten years, by the renewal that is due then.
  expect(authorities.size).toBe(3);
  expect(harness.issued()).toBe(21);
});

test('however often the Secret cannot be written, the certificate that is served stays trusted', async () => {
  const harness = await started();
  const shown = harness.serving()?.ca ?? '';
  await harness.removeSecret();
  harness.onCall = ({ verb }) => (verb === 'create' ? 'forbidden' : undefined);
  for (let count = 0; count < 30; count += 1) {
    expect((await harness.resync()).failed).toContain('forbidden');
    harness.clock.pass(MINUTE);
  }
  expect(bundle(harness, 0)).toContain(shown);
  expect(bundle(harness, 0).length).toBe(4);
  harness.onCall = () => undefined;
  await harness.resync();
  expect(bundle(harness, 1)).toContain(shown);
  await resyncs(harness);
  await expectGood(harness);
});

test('a configuration that lost its CA, or is new, is repaired', async () => {
  const harness = await started();
  await harness.editHook(1, ({ clientConfig: { caBundle: _, ...rest }, ...entry }) => ({
    ...entry,
    clientConfig: rest,
  }));
  harness.forgive();
  expect((await harness.resync()).actions).toEqual(['TrustAuthorities']);
  expect(bundle(harness, 1)).toEqual([harness.serving()?.ca]);
  harness.forgive();
  await expectGood(harness);
});

test('entries that call other services, and every other field, are not changed', async () => {
  const harness = createHarness();
  await harness.applyHooks();
  const foreign = {
    name: 'other.example.com',
    clientConfig: { url: 'https://other.example.com/', caBundle: 'b3RoZXI=' },
  };
  const [ours] = harness.hook(0).webhooks as Entry[];
  await harness.cluster.patch(
    { group: 'admissionregistration.k8s.io', version: 'v1', plural: 'mutatingwebhookconfigurations', kind: '' },
    undefined,
    'gateway-operator',
    { webhooks: [foreign, ours] },
  );
  await harness.resync();
  const { caBundle, ...clientConfig } = (harness.hook(0).webhooks as Entry[])[1]?.clientConfig ?? {};
  expect(caBundle).toBeTypeOf('string');
  expect(harness.hook(0).webhooks).toEqual([foreign, { ...ours, clientConfig: { ...clientConfig, caBundle } }]);
  expect(clientConfig).toEqual(ours?.clientConfig);
});

test('a Secret of cert-manager, or one that a person created, is never changed, and its CA is not written to configurations', async () => {
  const { issuer, clock } = createHarness();
  const validity = { from: START - DAY, until: START + 30 * DAY };
  const authority = await issuer.issueAuthority({ name: 'Theirs', ...validity });
  const pair = await issuer.issue({ authority, names: [HOST], ...validity });
  for (const annotations of [{ 'cert-manager.io/certificate-name': 'admission' }, {}]) {
    const harness = createHarness();
    await harness.applyHooks();
    const stringData = { 'ca.crt': pair.ca, 'tls.crt': pair.cert, 'tls.key': pair.key };
    await harness.cluster.create(
      { group: '', version: 'v1', plural: 'secrets', kind: 'Secret' },
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'admission-tls', namespace: NAMESPACE, annotations },
        stringData,
      },
    );
    const before = writes(harness);
    for (let day = 0; day < 29; day += 1, harness.clock.pass(DAY)) await harness.resync();
    expect(writes(harness)).toBe(before);
    const warned = harness.log.lines.filter(({ level }) => level === 'warn').map(({ message }) => message);
    const hasIssuer = 'cert-manager.io/certificate-name' in annotations;
    const issuer = hasIssuer ? 'cert-manager issues a new one' : 'the reconciler issues a new one';
    expect(warned[0]).toContain(`delete the Secret; then ${issuer}`);
    await harness.removeSecret();
    await harness.resync();
    expect(harness.serving()).toBeDefined();
  }
  expect(clock.now()).toBe(START);
});

test('a Secret of the operator that cert-manager takes over is no longer changed', async () => {
  const harness = await started();
  await harness.editSecret({ metadata: { annotations: { 'cert-manager.io/certificate-name': 'admission' } } });
  const before = writes(harness);
  harness.clock.pass(250 * DAY);
  expect(await harness.resync()).toEqual({ actions: [] });
  expect(writes(harness)).toBe(before);
});

test('the operator does not write the CA of a configuration into which cert-manager injects', async () => {
  const harness = createHarness();
  await harness.applyHooks();
  const resource = { group: 'admissionregistration.k8s.io', version: 'v1', kind: '' };
  const annotations = { 'cert-manager.io/inject-ca-from': 'gateway-operator/admission' };
  await harness.cluster.patch({ ...resource, plural: 'mutatingwebhookconfigurations' }, undefined, 'gateway-operator', {
    metadata: { annotations },
  });
  await harness.resync();
  expect([bundle(harness, 0).length, bundle(harness, 1).length]).toEqual([0, 1]);
});

test('after a change of the name of the Service, the same CA signs a new certificate', async () => {
  const harness = await started();
  const before = harness.serving()?.ca;
  await harness.resync({ ...harness.terms, service: { namespace: NAMESPACE, name: 'other' } });
  expect(harness.serving()).toBeUndefined();
  await harness.resync();
  expect(harness.serving()?.ca).toBe(before);
});

test('a dry run shows that a certificate would be issued and why, but no private key', async () => {
  const harness = createHarness();
  const row = { action: 'IssueCertificate', kind: 'Secret', namespace: NAMESPACE, name: 'admission-tls' };
  expect(await harness.plan()).toEqual([{ ...row, why: 'there is no certificate' }]);
  expect(writes(harness)).toBe(0);
  await harness.resync();
  expect(await harness.plan()).toEqual([]);
  expect(JSON.stringify(harness.log.lines)).not.toContain('BEGIN');
});

test('a resync renews the certificate and reports it; a trigger does not; a dry run only reports', async () => {
  const harness = createHarness();
  const trigger = {
    headers: { 'ce-type': 'dev.gateway-operator.trigger', 'ce-specversion': '1.0' },
    body: JSON.stringify({ kind: 'VirtualKey', namespace: 'default', name: 'chat' }),
  };
  expect(JSON.parse(await harness.post('', trigger))).not.toHaveProperty('certificate');
  const plan = await harness.post('?dry-run=true', { headers: { accept: 'text/plain' } });
  expect(plan).toBe('+ IssueCertificate Secret gateway-operator/admission-tls: there is no certificate\n');
  expect(harness.secret()).toBeUndefined();
  expect(JSON.parse(await harness.post())).toMatchObject({
    certificate: { actions: ['IssueCertificate', 'WriteCertificate'] },
  });
  const missing = ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration'];
  expect(JSON.parse(await harness.post())).toMatchObject({ certificate: { actions: [], missing } });
  await harness.applyHooks();
  expect(JSON.parse(await harness.post())).toMatchObject({
    certificate: { actions: ['TrustAuthorities', 'TrustAuthorities'] },
  });
  expect(JSON.parse(await harness.post())).not.toHaveProperty('certificate');
});

test('a resync writes the path of the admission webhook into each entry that calls it, also after the path has changed', async () => {
  const harness = await started();
  const pathsOf = (index: 0 | 1) =>
    (harness.hook(index).webhooks as Entry[]).map(({ clientConfig }) => clientConfig.service);
  const at = (path: string) => expect.objectContaining({ path });
  for (const path of ['a-first-segment', 'another-segment']) {
    const terms = { ...harness.terms, path };
    expect(await harness.resync(terms)).toEqual({ actions: ['RouteReviews', 'RouteReviews'] });
    expect(await harness.resync(terms)).toEqual({ actions: [] });
    expect(pathsOf(0)).toEqual([at(`/${path}/mutate`)]);
    expect(pathsOf(1)).toEqual([at(`/${path}/validate`), at(`/${path}/validate`)]);
  }
  await expectGood(harness);
});

test('if cert-manager injects into both configurations, no certificate is issued, but paths are written', async () => {
  const harness = createHarness({ path: 'a-first-segment' });
  await harness.applyHooks();
  const annotations = { 'cert-manager.io/inject-ca-from': 'gateway-operator/admission' };
  for (const resource of WEBHOOK_CONFIGURATIONS)
    await harness.cluster.patch(resource, undefined, CONFIGURATION_NAME, { metadata: { annotations } });
  await harness.editHook(0, (entry) => ({ ...entry, clientConfig: { ...entry.clientConfig, caBundle: 'dGhlaXJz' } }));
  expect(await harness.resync()).toEqual({ actions: ['RouteReviews', 'RouteReviews'] });
  expect(harness.secret()).toBeUndefined();
  expect(await harness.plan()).toEqual([]);
  const [entry] = harness.hook(0).webhooks as Entry[];
  expect(entry?.clientConfig).toMatchObject({ caBundle: 'dGhlaXJz', service: { path: '/a-first-segment/mutate' } });
});

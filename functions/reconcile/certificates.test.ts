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
  expect(Object.keys(data(bed)).sort()).toEqual(['ca.crt', 'tls.crt', 'tls.key']);
  expect(bed.secret()).toMatchObject({ type: 'kubernetes.io/tls', metadata: { namespace: NAMESPACE } });
  const serving = bed.serving();
  expect(serving && bed.issuer.inspect(serving, [HOST])).toEqual({ from: START - HOUR, until: START + 90 * DAY });
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

test('a renewal is trusted first, serves then, and what it replaces is forgotten last', async () => {
  const bed = await started();
  const told: string[] = [];
  const first = bed.serving();
  bed.clock.pass(60 * DAY - 2 * HOUR);
  for (let minute = 0; minute < 4 * 60; minute += 1) {
    const from = bed.log.lines.length;
    await bed.sweep();
    const lines = bed.log.lines.slice(from).map(({ fields }) => `${fields?.kind}: ${fields?.why}`);
    if (lines.length > 0) told.push(`after ${minute} min`, ...lines.map((line) => `  ${line}`));
    bed.clock.pass(MINUTE);
  }
  expect(`\n${told.join('\n')}\n`).toMatchInlineSnapshot(`
    "
    after 100 min
      Secret: two thirds of its life are over
      Secret: two thirds of its life are over
      MutatingWebhookConfiguration: it does not trust every certificate in use
      ValidatingWebhookConfiguration: it does not trust every certificate in use
      Secret: its successor is trusted
    after 101 min
      Secret: every API server trusts its successor
    after 161 min
      Secret: no Pod shows the one before any more
      MutatingWebhookConfiguration: it trusts certificates that are not in use
      ValidatingWebhookConfiguration: it trusts certificates that are not in use
    "
  `);
  expect(bed.serving()?.ca).not.toBe(first?.ca);
  expect(bed.issued()).toBe(2);
  await expectGood(bed);
});

test('in two years of sweeps there is always a certificate that everybody trusts, and never a pile of old ones', async () => {
  const bed = await started();
  let most = 0;
  let shortest = Number.POSITIVE_INFINITY;
  // Twice a day, and minute by minute where something is going on.
  for (const end = START + 730 * DAY; bed.clock.now() < end; ) {
    const { actions } = await bed.sweep();
    const { secret } = await bed.view();
    const serving = secret.state === 'own' ? secret.serving : undefined;
    most = Math.max(most, bundle(bed, 0).length);
    shortest = Math.min(shortest, (serving?.until ?? 0) - bed.clock.now());
    const isBusy = actions.length > 0 || data(bed)['next-ca.crt'] !== undefined;
    bed.clock.pass(isBusy ? MINUTE : DAY / 2);
  }
  expect(bed.complaints()).toEqual([]);
  expect(most).toBe(2);
  expect(shortest / DAY).toBeGreaterThan(29);
  expect(bed.issued()).toBe(13);
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
  expect(bundle(bed, 0).length).toBe(8);
  bed.onCall = () => undefined;
  await bed.sweep();
  expect(bundle(bed, 1)).toContain(shown);
  await sweeps(bed);
  await expectGood(bed);
});

test('a configuration that lost its CA, or is new, is mended; a renewal waits for it from the start', async () => {
  const bed = await started();
  bed.clock.pass(61 * DAY);
  await bed.sweep();
  const next = data(bed)['next-ca.crt'];
  bed.clock.pass(MINUTE - 1);
  await bed.editHook(1, ({ clientConfig: { caBundle: _, ...rest }, ...entry }) => ({ ...entry, clientConfig: rest }));
  bed.clock.pass(1);
  await bed.sweep();
  expect(data(bed)['next-ca.crt']).toBe(next);
  expect(bundle(bed, 1)).toHaveLength(2);
  bed.clock.pass(MINUTE);
  await bed.sweep();
  expect(data(bed)['ca.crt']).toBe(next);
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
  const pair = await issuer.issue({ authority: 'Theirs', names: [HOST], from: START - DAY, until: START + 30 * DAY });
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
  bed.clock.pass(61 * DAY);
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

test('another name of the Service is a reason for another certificate, and the one before stays trusted for a while', async () => {
  const bed = await started();
  const before = bed.serving()?.ca ?? '';
  await bed.sweep({ ...bed.terms, service: { namespace: NAMESPACE, name: 'other' } });
  expect(bed.serving()).toBeUndefined();
  await bed.sweep();
  expect(bundle(bed, 0)).toEqual([before, bed.serving()?.ca]);
});

test('a dry run says the first step, and no key', async () => {
  const bed = createBed();
  expect(await bed.foresee()).toEqual([
    { action: 'IssueCertificate', kind: 'Secret', namespace: NAMESPACE, name: 'admission-tls', why: 'there is none' },
  ]);
  expect(writes(bed)).toBe(0);
  await bed.sweep();
  await bed.applyHooks();
  expect(await bed.foresee()).toMatchObject([
    { action: 'TrustAuthorities', kind: 'MutatingWebhookConfiguration', namespace: '', name: 'gateway-operator' },
  ]);
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
  expect(plan).toBe('+ IssueCertificate Secret gateway-operator/admission-tls: there is none\n');
  expect(bed.secret()).toBeUndefined();
  expect(JSON.parse(await bed.post())).toMatchObject({
    certificate: { actions: ['IssueCertificate', 'WriteCertificate'] },
  });
  expect(JSON.parse(await bed.post())).not.toHaveProperty('certificate');
  await bed.applyHooks();
  const next = await bed.post('?dry-run=true', { headers: { accept: 'text/plain' } });
  expect(next).toContain('~ TrustAuthorities MutatingWebhookConfiguration gateway-operator: it does not trust');
});

// Who may send reviews, where API servers prove who they are?
import { describe, expect, test } from 'vitest';
import type { TokenVerdict, TokenVerifier } from '#core/ports/token.ts';
import { createWorld, depsOf, GOOD, objectOf, requestOf } from '../../test/admission/fixtures.ts';
import { createAdmission } from './app.ts';
import { createCaller } from './caller.ts';

const { cluster } = await createWorld();
const AUDIENCE = 'https://admission.gateway-operator.svc:443';
const KEYS = 'auth.gateway-operator.dev';
const bad = objectOf('VirtualKey', { ...GOOD.VirtualKey, maxBudget: 'ten' });

const attested = (...groups: unknown[]): TokenVerdict => ({
  ok: true,
  claims: { subject: 'system:apiserver', kubernetes: { attestations: { admissionReviewAPIGroups: groups } } },
});

/** An admission function whose verifier says this of every token; what it was asked, logged and counted. */
function scene(mode: 'report' | 'enforce', verdict: TokenVerdict | (() => Promise<TokenVerdict>)) {
  const asked: string[][] = [];
  const logged: unknown[] = [];
  const counted: string[] = [];
  const verifier: TokenVerifier = {
    verify: async (token, audience) => {
      asked.push([token, audience]);
      return typeof verdict === 'function' ? verdict() : verdict;
    },
  };
  const log = { info: () => {}, warn: (_: string, fields?: unknown) => logged.push(fields), error: () => {} };
  const metrics = {
    ...depsOf(cluster).metrics,
    add: (name: string, labels?: Readonly<Record<string, string>>) => {
      if (name === 'gateway_operator_admission_callers_total') counted.push(String(labels?.result));
    },
  };
  const caller = createCaller({ verifier, mode, audience: AUDIENCE, log, metrics });
  const app = createAdmission(depsOf(cluster, { caller }));
  const send = (headers: Record<string, string> = { authorization: 'Bearer t' }, body?: unknown, path = '/validate') =>
    app.request(`http://10.0.0.1:8443${path}?timeout=5s`, {
      method: 'POST',
      headers,
      body: JSON.stringify(
        body ?? { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: requestOf(bad) },
      ),
    });
  return { send, asked, logged, counted };
}

describe('enforce', () => {
  test.each([[KEYS], ['*']])('answers a caller that is attested for %s, and judges what it sends', async (group) => {
    const { send, counted } = scene('enforce', attested(group));
    const answer = await send();
    expect(answer.status).toBe(200);
    expect(await answer.json()).toMatchObject({ response: { allowed: false, status: { code: 422 } } });
    expect(counted).toEqual(['verified']);
  });

  test('asks for a token that was made for exactly the address that was called', async () => {
    const { send, asked } = scene('enforce', attested('*'));
    await send();
    await send({ authorization: 'bearer other' }, undefined, '/mutate');
    expect(asked).toEqual([
      ['t', `${AUDIENCE}/validate`],
      ['other', `${AUDIENCE}/mutate`],
    ]);
  });

  test.each([
    ['without a token', {}, attested('*'), 'NoToken'],
    ['with a password', { authorization: 'Basic dTpw' }, attested('*'), 'NoToken'],
    ['with an empty token', { authorization: 'Bearer ' }, attested('*'), 'NoToken'],
    ['whose token does not hold', { authorization: 'Bearer t' }, { ok: false, problem: 'Expired' }, 'Expired'],
    ['that is attested for another group', { authorization: 'Bearer t' }, attested('apps'), 'OtherGroup'],
    ['that is attested for nothing', { authorization: 'Bearer t' }, attested(), 'NotAttested'],
    ['that is attested for what is no group', { authorization: 'Bearer t' }, attested(1, null, {}), 'NotAttested'],
    [
      'that is any other service account',
      { authorization: 'Bearer t' },
      { ok: true, claims: { subject: 'system:serviceaccount:a:b', kubernetes: { namespace: 'a' } } },
      'NotAttested',
    ],
    [
      'whose claims have no shape at all',
      { authorization: 'Bearer t' },
      { ok: true, claims: { subject: undefined, kubernetes: ['x'] } },
      'NotAttested',
    ],
  ] as ReadonlyArray<[string, Record<string, string>, TokenVerdict, string]>)(
    'answers 401 to a caller %s, says why in the log only, and judges nothing',
    async (_, headers, verdict, problem) => {
      const { send, logged, counted } = scene('enforce', verdict);
      const answer = await send(headers);
      expect(answer.status).toBe(401);
      expect(answer.headers.get('www-authenticate')).toBe('Bearer');
      const text = await answer.text();
      expect(JSON.parse(text)).toMatchObject({ kind: 'Status', reason: 'Unauthorized', code: 401 });
      expect(text).not.toContain(problem);
      expect(text).not.toContain('maxBudget');
      expect(counted).toEqual([problem]);
      expect(logged).toEqual([expect.objectContaining({ problem, mode: 'enforce' })]);
    },
  );

  test('reads nothing of what a stranger sends', async () => {
    const { send } = scene('enforce', { ok: false, problem: 'BadSignature' });
    expect((await send({ authorization: 'Bearer t' }, 'no review at all')).status).toBe(401);
  });

  test('answers 500 when the issuer’s keys cannot be read, so that the failure policy decides', async () => {
    const { send } = scene('enforce', () => Promise.reject(new Error('the API server is away')));
    expect((await send()).status).toBe(500);
  });
});

describe('report', () => {
  test('answers everybody, and says who would not be', async () => {
    for (const [verdict, problem] of [
      [{ ok: false, problem: 'WrongAudience' }, 'WrongAudience'],
      [attested('apps'), 'OtherGroup'],
      [attested(), 'NotAttested'],
    ] as const) {
      const { send, logged, counted } = scene('report', verdict);
      const answer = await send();
      expect(answer.status).toBe(200);
      expect(await answer.json()).toMatchObject({ response: { allowed: false } });
      expect(counted).toEqual([problem]);
      expect(logged).toEqual([expect.objectContaining({ problem, mode: 'report' })]);
    }
  });

  test('answers, too, when the issuer’s keys cannot be read: it only watches', async () => {
    const { send, counted, logged } = scene('report', () => Promise.reject(new Error('the API server is away')));
    expect((await send()).status).toBe(200);
    expect(counted).toEqual(['KeysUnreadable']);
    expect(logged).toEqual([expect.objectContaining({ problem: 'KeysUnreadable', error: 'the API server is away' })]);
  });
});

test('off, which is the default, looks at no token', async () => {
  const app = createAdmission(depsOf(cluster));
  const body = { apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: requestOf(bad) };
  const answer = await app.request('/validate', { method: 'POST', body: JSON.stringify(body) });
  expect(answer.status).toBe(200);
});

// Checks of an installation, against a cluster in memory.
import { expect, test } from 'vitest';
import type { Cluster, WriteResult } from '#core/ports/cluster.ts';
import { checkAdmission, makeTestCall } from '../check-installation.ts';

/** A cluster that answers dry runs and Secrets; seconds pass while the check waits. */
function depsOf(
  answers: { readonly apply?: () => WriteResult<never>; readonly key?: string },
  replies: ReadonlyArray<object> = [],
) {
  let millis = 0;
  const left = [...replies];
  // Only the two calls of the check.
  const cluster = {
    apply: async () => answers.apply?.(),
    get: async () => answers.key && { data: { key: Buffer.from(answers.key).toString('base64') } },
  } as unknown as Cluster;
  const now = () => millis;
  const pause = async (more: number) => {
    millis += more;
  };
  const asked: string[] = [];
  const send = async (url: string | URL | Request, init?: RequestInit) => {
    asked.push(`${url} ${new Headers(init?.headers).get('authorization')}`);
    return Response.json(left.shift());
  };
  return { asked, deps: { cluster, now, pause, fetch: send }, waited: () => millis };
}
const refusal = (message: string): WriteResult<never> => ({ ok: false, refusal: 'forbidden', message });

test('the refusal of a wrong instance shows that the admission webhook works', async () => {
  const words = 'admission webhook "validate.gateway-operator.dev" denied the request: not found';
  const answers = [refusal('failed calling webhook'), refusal(words)];
  const { deps, waited } = depsOf({ apply: () => answers.shift() ?? refusal('') });
  expect(await checkAdmission(deps, 'default')).toBe(words);
  expect(waited()).toBe(1_000);
});

test.each([
  ['that no webhook reviews', () => ({ ok: true }) as WriteResult<never>, 'no webhook of the operator reviews it'],
  ['that the account may not create', () => refusal('gatewayinstances is forbidden'), 'gatewayinstances is forbidden'],
])('a wrong instance %s fails the check after three minutes', async (_, apply, message) => {
  const { deps, waited } = depsOf({ apply });
  await expect(checkAdmission(deps, 'default')).rejects.toThrow(message);
  expect(waited()).toBe(180_000);
});

test('a call prints the reply, and the spend of the key before and after it', async () => {
  const completion = { choices: [{ message: { content: 'Hello' } }] };
  const { deps, asked } = depsOf({ key: 'sk-1' }, [{ currentSpend: '0' }, completion, { currentSpend: '0.0000102' }]);
  const call = { url: 'http://gateway', model: 'sample-small', secret: { namespace: 'a', name: 'first-key' } };
  expect(await makeTestCall(deps, call)).toEqual({ reply: 'Hello', before: '0', after: '0.0000102' });
  const paths = ['/key', '/chat/completions', '/key'];
  expect(asked).toEqual(paths.map((path) => `http://gateway${path} Bearer sk-1`));
});

test('a VirtualKey without its Secret is named', async () => {
  const call = { url: 'http://gateway', model: 'sample-small', secret: { namespace: 'a', name: 'first-key' } };
  await expect(makeTestCall(depsOf({}).deps, call)).rejects.toThrow('Secret a/first-key does not exist');
});

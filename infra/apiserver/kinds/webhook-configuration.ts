// What may a webhook configuration say, and what does the server fill in?
import { type KubeObject, withMember } from '../object.ts';
import type { Strategy } from '../resources/resource.ts';
import type { Cause } from '../schema/cause.ts';
import { compileCel } from '../schema/cel.ts';
import { isObject, type JsonObject } from '../schema/json.ts';
import { forbidden, invalid, notSupported, required } from '../schema/refusals.ts';
import { eachObject, listAt, objectAt, withDefaults } from './member-of.ts';

export const webhookConfiguration: Strategy = {
  prepare(object) {
    const reinvocationPolicy = object.kind === 'MutatingWebhookConfiguration' ? 'Never' : undefined;
    const webhooks = eachObject(object.webhooks, (hook) => {
      const rules = eachObject(hook.rules, (rule) => withDefaults(rule, { scope: '*' }));
      const service = objectAt(hook, 'clientConfig').service;
      const clientConfig = isObject(service)
        ? { ...objectAt(hook, 'clientConfig'), service: withDefaults(service, { port: 443 }) }
        : hook.clientConfig;
      return withDefaults(
        { ...hook, ...(rules !== undefined && { rules }), ...(clientConfig !== undefined && { clientConfig }) },
        {
          failurePolicy: 'Fail',
          matchPolicy: 'Equivalent',
          namespaceSelector: {},
          objectSelector: {},
          reinvocationPolicy,
          timeoutSeconds: 10,
        },
      );
    });
    return webhooks === undefined ? object : withMember(object, 'webhooks', webhooks);
  },
  check: (object) => [...hooks(object), ...twice(object)],
};

function hooks(object: KubeObject): Cause[] {
  return listAt(object, 'webhooks')
    .filter(isObject)
    .flatMap((hook, i) => {
      const path = `webhooks[${i}]`;
      return [
        ...name(hook, path),
        ...sideEffects(hook, path),
        ...versions(hook, path),
        ...timeout(hook, path),
        ...client(hook, `${path}.clientConfig`),
        ...conditions(hook, `${path}.matchConditions`),
      ];
    });
}

function name({ name }: JsonObject, path: string): Cause[] {
  if (String(name ?? '').split('.').length >= 3) return [];
  return [invalid(`${path}.name`, name ?? '', 'should be a domain with at least three segments separated by dots')];
}

function sideEffects({ sideEffects }: JsonObject, path: string): Cause[] {
  const at = `${path}.sideEffects`;
  if (sideEffects === undefined) return [required(at, 'must specify one of None, NoneOnDryRun')];
  return sideEffects === 'None' || sideEffects === 'NoneOnDryRun'
    ? []
    : [notSupported(at, sideEffects, ['None', 'NoneOnDryRun'])];
}

function versions(hook: JsonObject, path: string): Cause[] {
  const known = listAt(hook, 'admissionReviewVersions');
  const at = `${path}.admissionReviewVersions`;
  if (known.length === 0) return [required(at, 'must specify one of v1, v1beta1')];
  return known.includes('v1') ? [] : [invalid(at, known, 'must include at least one of v1, v1beta1')];
}

function timeout({ timeoutSeconds }: JsonObject, path: string): Cause[] {
  if (typeof timeoutSeconds !== 'number' || (timeoutSeconds >= 1 && timeoutSeconds <= 30)) return [];
  return [invalid(`${path}.timeoutSeconds`, timeoutSeconds, 'the timeout value must be between 1 and 30 seconds')];
}

function client(hook: JsonObject, path: string): Cause[] {
  const { url, service } = objectAt(hook, 'clientConfig');
  if ((url === undefined) === (service === undefined)) {
    return [required(path, 'exactly one of url or service is required')];
  }
  return typeof url === 'string' ? address(url, `${path}.url`) : [];
}

function address(url: string, path: string): Cause[] {
  if (!URL.canParse(url)) return [required(path, `url must be a valid URL: ${url}`)];
  const { protocol, search, hash, username, password } = new URL(url);
  const causes: Cause[] = [];
  if (protocol !== 'https:') {
    const detail = `'https' is the only allowed URL scheme; desired format: https://host[/path]`;
    causes.push(invalid(path, protocol.slice(0, -1), detail));
  }
  if (username || password)
    causes.push(
      invalid(path, `${username}${password && `:${password}`}`, 'user information is not permitted in the URL'),
    );
  if (hash) causes.push(invalid(path, hash.slice(1), 'fragments are not permitted in the URL'));
  if (search) causes.push(invalid(path, search.slice(1), 'query parameters are not permitted in the URL'));
  return causes;
}

function conditions(hook: JsonObject, path: string): Cause[] {
  return listAt(hook, 'matchConditions').flatMap((condition, i) => {
    const expression = String((condition as JsonObject).expression ?? '');
    try {
      compileCel(expression);
      return [];
    } catch (error) {
      return [invalid(`${path}[${i}].expression`, expression, (error as Error).message)];
    }
  });
}

function twice(object: KubeObject): Cause[] {
  const names = listAt(object, 'webhooks').map((hook) => (hook as JsonObject).name);
  const again = names.flatMap((one, i) => (names.indexOf(one) < i ? [i] : []));
  return again.map((i) => ({
    ...forbidden('', ''),
    field: `webhooks[${i}].name`,
    reason: 'FieldValueDuplicate',
    message: `Duplicate value: "${names[i]}"`,
  }));
}

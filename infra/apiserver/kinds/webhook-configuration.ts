// Webhook configurations: their defaults, and what keeps one from being called.
import { type KubeObject, withMember } from '../object.ts';
import type { Strategy } from '../resource.ts';
import type { Cause } from '../schema/cause.ts';
import { compileCel } from '../schema/cel.ts';
import { forbidden, invalid, notSupported, required } from '../schema/field-errors.ts';
import { isObject, type JsonObject } from '../schema/json.ts';
import { eachObject, listAt, objectAt, withDefaults } from './member-of.ts';

export const webhookConfiguration: Strategy = {
  applyDefaults(object) {
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
  validate: (object) => [...hooks(object), ...twice(object)],
};

function hooks(object: KubeObject): Cause[] {
  return listAt(object, 'webhooks')
    .filter(isObject)
    .flatMap((hook, i) => {
      const path = `webhooks[${i}]`;
      return [
        ...sideEffects(hook, path),
        ...client(hook, `${path}.clientConfig`),
        ...conditions(hook, `${path}.matchConditions`),
      ];
    });
}

function sideEffects({ sideEffects }: JsonObject, path: string): Cause[] {
  const at = `${path}.sideEffects`;
  if (sideEffects === undefined) return [required(at, 'must specify one of None, NoneOnDryRun')];
  return sideEffects === 'None' || sideEffects === 'NoneOnDryRun'
    ? []
    : [notSupported(at, sideEffects, ['None', 'NoneOnDryRun'])];
}

function client(hook: JsonObject, path: string): Cause[] {
  const { url, service } = objectAt(hook, 'clientConfig');
  if ((url === undefined) === (service === undefined)) {
    return [required(path, 'exactly one of url or service is required')];
  }
  const scheme = URL.parse(String(url))?.protocol.slice(0, -1);
  if (url === undefined || scheme === 'https') return [];
  const why = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
  return [invalid(`${path}.url`, scheme ?? url, why)];
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

// Webhook configurations: their defaults, and the errors that keep a webhook from being called.
import { type KubeObject, withMember } from '../object.ts';
import type { Strategy } from '../resource.ts';
import { compileCel } from '../schema/cel.ts';
import { type Cause, compileCauses, duplicate, invalid, notSupported, required } from '../schema/field-errors.ts';
import { isObject, type JsonObject, listAt, objectAt, withDefaults } from '../schema/json.ts';

export const webhookConfiguration: Strategy = {
  applyDefaults(object) {
    if (object.webhooks === undefined) return object;
    const reinvocationPolicy = object.kind === 'MutatingWebhookConfiguration' ? 'Never' : undefined;
    const webhooks = webhooksOf(object).map((webhook) => {
      const rules = listAt(webhook, 'rules').map((rule) => withDefaults(rule, { scope: '*' }));
      return withDefaults({ ...webhook, rules }, { ...defaults, reinvocationPolicy });
    });
    return withMember(object, 'webhooks', webhooks);
  },
  validate(object) {
    const names = webhooksOf(object).map(({ name }) => name);
    return webhooksOf(object).flatMap((webhook, i) => [
      ...(names.indexOf(webhook.name) < i ? [duplicate(`webhooks[${i}].name`, webhook.name)] : []),
      ...sideEffectsCauses(webhook, `webhooks[${i}].sideEffects`),
      ...clientCauses(webhook, `webhooks[${i}].clientConfig`),
      ...conditionCauses(webhook, `webhooks[${i}].matchConditions`),
    ]);
  },
};

const defaults = {
  failurePolicy: 'Fail',
  matchPolicy: 'Equivalent',
  namespaceSelector: {},
  objectSelector: {},
  timeoutSeconds: 10,
};

function webhooksOf(object: KubeObject): readonly JsonObject[] {
  return listAt(object, 'webhooks').filter(isObject);
}

function sideEffectsCauses({ sideEffects }: JsonObject, path: string): Cause[] {
  const supported = ['None', 'NoneOnDryRun'];
  if (sideEffects === undefined) return [required(path, `must specify one of ${supported.join(', ')}`)];
  return supported.includes(String(sideEffects)) ? [] : [notSupported(path, sideEffects, supported)];
}

function clientCauses(webhook: JsonObject, path: string): Cause[] {
  const { url, service } = objectAt(webhook, 'clientConfig');
  if ((url === undefined) === (service === undefined)) {
    return [required(path, 'exactly one of url or service is required')];
  }
  const scheme = URL.parse(String(url))?.protocol.slice(0, -1);
  if (url === undefined || scheme === 'https') return [];
  const why = "'https' is the only allowed URL scheme; desired format: https://host[/path]";
  return [invalid(`${path}.url`, scheme ?? url, why)];
}

function conditionCauses(webhook: JsonObject, path: string): Cause[] {
  return listAt(webhook, 'matchConditions').flatMap((condition, i) => {
    const { expression } = condition as JsonObject;
    return compileCauses(() => compileCel(String(expression), 'condition'), `${path}[${i}].expression`, expression);
  });
}

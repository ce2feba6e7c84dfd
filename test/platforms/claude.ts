// The sample with an entry in Anthropic's dialect, which every key may use.
import type { KubeObject } from '#core/ports/cluster.ts';

export function withClaude(sample: ReadonlyArray<KubeObject>): ReadonlyArray<KubeObject> {
  const small = sample.find(({ metadata }) => metadata.name === 'sample-model-small');
  const secret = { ...small, metadata: { ...small?.metadata, name: 'sample-model-claude' } } as KubeObject;
  const claude = {
    modelName: 'sample-claude',
    identifier: 'sample-claude',
    requiresAuth: true,
    modelCredentials: { nameRef: 'sample-model-claude', keys: { apiKey: 'apiKey', apiBase: 'apiBase' } },
    gatewayParams: {
      model: 'anthropic/sample-small',
      inputCostPerMillionTokens: '0.15',
      outputCostPerMillionTokens: '0.60',
    },
  };
  const withModel = (object: KubeObject, more: unknown): KubeObject => {
    const spec = (object.spec ?? {}) as { readonly models?: ReadonlyArray<unknown> };
    return spec.models === undefined ? object : { ...object, spec: { ...spec, models: [...spec.models, more] } };
  };
  // Keys, users and teams with a list of models may use it.
  return [
    secret,
    ...sample.map((object) => withModel(object, object.kind === 'GatewayInstance' ? claude : 'sample-claude')),
  ];
}

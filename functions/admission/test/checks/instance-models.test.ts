// Checks of an instance's models: prices, credentials, and keys that are restricted to them.
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds/kinds.ts';
import { createWorld, modelEntry, objectOf, secretOf, type World } from '../../../../test/admission/fixtures.ts';
import { createReviews, spare } from '../../../../test/admission/reviews.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
const { review } = createReviews(() => world);

describe('an instance', () => {
  const instance = (change: object, metadata = {}, more = {}) => review('GatewayInstance', change, metadata, more);

  test('without entries, without a price, with unknown names is accepted with warnings', async () => {
    expect((await instance({ models: [] })).warnings).toEqual([
      expect.stringContaining('spec.models: the instance has no model entries'),
    ]);
    await world.put(RESOURCES.secrets, secretOf('odd', { apiKey: 'x' }));
    const models = [
      modelEntry('mine', {
        modelCredentials: { nameRef: 'odd', keys: { apikey: 'apiKey' } },
        gatewayParams: { model: 'nobody/mine', inputCostPerMillionTokens: '1' },
      }),
    ];
    expect(await instance({ models })).toEqual({
      refused: [],
      warnings: [
        'spec.models[0].gatewayParams.model: "nobody/mine": provider "nobody" is unknown, and the model entry has no apiBase; correct the provider, or set apiBase',
        'spec.models[0].gatewayParams: without outputCostPerMillionTokens, keys can use "mine" for embeddings only; set it for anything else ("0" is free)',
        'spec.models[0].modelCredentials.keys.apikey: no provider reads a credential of this name; did you mean "apiKey"?',
      ],
    });
  });

  test.each<[model: string, more: object, warning: string | undefined]>([
    [
      'opnai/gpt-5-mini',
      {},
      'spec.models[0].gatewayParams.model: "opnai/gpt-5-mini": provider "opnai" is unknown, and the model entry has no apiBase; did you mean "openai"? If it is your own server, set apiBase',
    ],
    ['opnai/gpt-5-mini', { apiBase: 'https://models.example.com/v1' }, undefined],
    [
      'vllm/llama',
      {},
      'spec.models[0].gatewayParams.model: "vllm/llama": vllm has no address of its own, so the model entry serves nothing; set apiBase',
    ],
    [
      'bedrock/amazon.nova-pro-v1:0',
      {},
      'spec.models[0].gatewayParams.model: "bedrock/amazon.nova-pro-v1:0": bedrock has no address of its own, so the model entry serves nothing; set apiBase, or map awsRegion in modelCredentials',
    ],
    [
      'openai/gpt-5-mini',
      { customLLMProvider: 'anthropc' },
      'spec.models[0].gatewayParams.customLLMProvider: "anthropc": provider "anthropc" is unknown, and the model entry has no apiBase; did you mean "anthropic"? If it is your own server, set apiBase',
    ],
    ['OpenAI/gpt-5-mini', {}, undefined],
  ])('with an entry %s %o without an address gets a warning', async (model, more, warning) => {
    const prices = { inputCostPerMillionTokens: '1', outputCostPerMillionTokens: '1' };
    const { refused, warnings } = await instance({
      models: [modelEntry('gpt-4o', { gatewayParams: { model, ...prices, ...more } })],
    });
    expect(refused).toEqual([]);
    expect(warnings).toEqual(warning === undefined ? [] : [warning]);
  });

  test('needs no prices for models in the price list, and a price for every other model', async () => {
    const warnings = async (model: string) =>
      (await instance({ models: [modelEntry('gpt-4o', { gatewayParams: { model } })] })).warnings;
    expect(await warnings('openai/gpt-4o-mini')).toEqual([]);
    expect(await warnings('openai/my-own')).toEqual([
      'spec.models[0].gatewayParams: no key can use "gpt-4o" without a price, and no price is listed for "openai/my-own"; set inputCostPerMillionTokens and outputCostPerMillionTokens ("0" is free)',
    ]);
  });

  test('that loses a model to which keys are restricted gets a warning with their names', async () => {
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f'])
      await world.put(virtualKeys, spare(name, { keyAlias: name, models: ['claude'] }));
    await world.put(
      virtualKeys,
      spare('other', {
        keyAlias: 'o',
        models: ['claude'],
        connectionRef: { instanceRef: { name: 'main', namespace: 'team-b' } },
      }),
    );
    const old = objectOf('GatewayInstance');
    const { refused, warnings } = await instance({ models: [modelEntry('gpt-4o')] }, {}, { oldObject: old });
    expect(refused).toEqual([]);
    expect(warnings).toEqual([
      'spec.models: "claude" is no longer served, and VirtualKeys are restricted to it (6): team-a/a, team-a/b, team-a/c, team-a/d, team-a/e, and 1 more; change their spec.models, or keep a model entry of this name',
    ]);
  });
});

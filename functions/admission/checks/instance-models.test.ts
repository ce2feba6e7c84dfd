// What is said of an instance's models: prices, providers, credentials, and keys that are restricted to them?
import { beforeEach, describe, expect, test } from 'vitest';
import { RESOURCES } from '#core/ports/cluster.ts';
import { virtualKeys } from '#crds/kinds.ts';
import { createWorld, modelEntry, objectOf, secretOf, type World } from '../../../test/admission/fixtures.ts';
import { createReviews, spare } from '../../../test/admission/reviews.ts';

let world: World;
beforeEach(async () => {
  world = await createWorld();
});
const { told } = createReviews(() => world);

describe('an instance', () => {
  const instance = (change: object, metadata = {}, more = {}) => told('GatewayInstance', change, metadata, more);

  test('without entries, without a price, with unknown names is let in with warnings', async () => {
    expect((await instance({ models: [] })).warnings).toEqual([expect.stringContaining('spec.models: has no entries')]);
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
        'spec.models[0].gatewayParams: a key with a budget cannot use "mine" without a price; set outputCostPerMillionTokens ("0" is free): half a price is none',
        'spec.models[0].gatewayParams.model: "nobody/mine": the gateway has no address for provider "nobody"; add a credential apiBase, or gatewayParams.apiBase',
        'spec.models[0].modelCredentials.keys.apikey: no provider reads a credential of this name; did you mean "apiKey"?',
      ],
    });
  });

  test('with an unknown provider override at an address of its own is warned about, a known one is not', async () => {
    const params = {
      model: 'a/b',
      apiBase: 'https://llm.example.com/v1',
      inputCostPerMillionTokens: '0',
      outputCostPerMillionTokens: '0',
    };
    const entry = (customLLMProvider: string) => [
      modelEntry('gpt-4o', { gatewayParams: { ...params, customLLMProvider } }),
    ];
    expect((await instance({ models: entry('ours') })).warnings).toEqual([
      'spec.models[0].gatewayParams.customLLMProvider: "ours": the gateway does not know provider "ours"; check that its apiBase is OpenAI-compatible',
    ]);
    expect((await instance({ models: entry('anthropic') })).warnings).toEqual([]);
  });

  test('with credentials that no request to the provider carries is warned about, with what it takes instead', async () => {
    const keys = Object.fromEntries(
      ['awsAccessKeyId', 'awsRegion', 'vertexCredentials', 'organization'].map((name) => [name, name]),
    );
    await world.put(RESOURCES.secrets, secretOf('cloud', keys));
    const warnings = async (model: string, ...names: string[]) => {
      const modelCredentials = { nameRef: 'cloud', keys: Object.fromEntries(names.map((name) => [name, name])) };
      const params = { model, inputCostPerMillionTokens: '0', outputCostPerMillionTokens: '0' };
      return (await instance({ models: [modelEntry('m', { modelCredentials, gatewayParams: params })] })).warnings;
    };
    expect(await warnings('bedrock/openai.gpt-oss-120b-1:0', 'awsAccessKeyId')).toEqual([
      'spec.models[0].gatewayParams.model: "bedrock/openai.gpt-oss-120b-1:0": the address of provider "bedrock" is made of awsRegion; add that to modelCredentials.keys, or an apiBase',
      'spec.models[0].modelCredentials.keys.awsAccessKeyId: requests to "bedrock" do not carry it; give an API key of Bedrock\'s as apiKey: the gateway signs no requests',
    ]);
    expect(await warnings('bedrock/openai.gpt-oss-120b-1:0', 'awsRegion')).toEqual([]);
    expect((await warnings('vertex_ai/google/gemini-2.5-pro', 'vertexCredentials')).at(-1)).toContain(
      'keep an access token in the Secret as apiKey',
    );
    expect(await warnings('anthropic/claude', 'organization')).toEqual([
      'spec.models[0].modelCredentials.keys.organization: requests to "anthropic" do not carry it; remove it: they carry apiKey, apiBase, apiVersion',
    ]);
    expect(await warnings('openai/gpt-4o', 'organization')).toEqual([]);
  });

  test('whose models their providers list needs no prices, and a model in no list does', async () => {
    const warnings = async (model: string) =>
      (await instance({ models: [modelEntry('gpt-4o', { gatewayParams: { model } })] })).warnings;
    expect(await warnings('openai/gpt-4o-mini')).toEqual([]);
    expect(await warnings('openai/my-own')).toEqual([
      'spec.models[0].gatewayParams: a key with a budget cannot use "gpt-4o" without a price; set inputCostPerMillionTokens and outputCostPerMillionTokens ("0" is free): no price is listed for "openai/my-own"',
    ]);
  });

  test('that loses a model which keys are restricted to is warned about, with their names', async () => {
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
      'spec.models: "claude" is no longer served, and 6 of the keys are restricted to it: team-a/a, team-a/b, team-a/c, team-a/d, team-a/e, and 1 more; change their spec.models, or keep an entry of this name',
    ]);
  });
});

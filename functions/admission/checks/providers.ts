// Does anybody know where the provider of an entry listens?

import { partsOf } from '#core/credential-names.ts';
import type { Finding } from '#core/finding.ts';
import { nearest } from '#core/nearest.ts';
import { KNOWN_PROVIDERS, knowsProvider, providerOf } from '#core/providers.ts';
import type { Check } from '../check.ts';
import { InstanceView, type ModelEntryView, toView } from '../spec-views.ts';

export const providers: Check = ({ object }) =>
  toView(InstanceView, object.spec).models.flatMap((entry, index) => judgeEntry(entry, index));

function judgeEntry({ gatewayParams, modelCredentials }: ModelEntryView, index: number): Finding[] {
  const slash = gatewayParams?.model?.indexOf('/') ?? -1;
  const override = gatewayParams?.customLLMProvider;
  const provider = override ?? (slash > 0 ? gatewayParams?.model?.slice(0, slash) : undefined);
  if (provider === undefined || provider === '') return [];
  const has = (name: string) => Object.hasOwn(modelCredentials?.keys ?? {}, name);
  const hasAddress = gatewayParams?.apiBase !== undefined || has('apiBase');
  const absent = partsOf(providerOf(provider)).filter((name) => !has(name));
  const reached = hasAddress || (providerOf(provider).base !== undefined && absent.length === 0);
  const at = `spec.models[${index}].gatewayParams`;
  const ending = /\/(chat\/completions|messages)\/*$/.exec(gatewayParams?.apiBase ?? '')?.[0];
  if (ending !== undefined) {
    const message = `the gateway adds ${JSON.stringify(ending)} itself, so this address is asked for it twice; leave it out`;
    return [{ rule: 'WholeAddress', path: `${at}.apiBase`, value: gatewayParams?.apiBase, message, effect: 'warn' }];
  }
  if (reached && knowsProvider(provider)) return [];
  const path = override === undefined ? `${at}.model` : `${at}.customLLMProvider`;
  const found = { path, value: override ?? gatewayParams?.model, effect: 'warn' } as const;
  const meant = knowsProvider(provider) ? undefined : nearest(provider, KNOWN_PROVIDERS);
  const or = meant === undefined ? '' : `did you mean ${JSON.stringify(meant)}? Else `;
  if (!hasAddress && providerOf(provider).base === undefined) {
    const message = `the gateway has no address for provider ${JSON.stringify(provider)}; ${or}add a credential apiBase, or gatewayParams.apiBase`;
    return [{ rule: 'ProviderWithoutAddress', message, ...found }];
  }
  if (!hasAddress && absent.length > 0) {
    const message = `the address of provider ${JSON.stringify(provider)} is made of ${absent.join(' and ')}; add that to modelCredentials.keys, or an apiBase`;
    return [{ rule: 'ProviderWithoutAddress', message, ...found }];
  }
  // Somebody else's name before the slash is nothing to be told about, unless it looks like a slip.
  if (knowsProvider(provider) || (override === undefined && meant === undefined)) return [];
  const message = `the gateway does not know provider ${JSON.stringify(provider)}; ${or}check that its apiBase is OpenAI-compatible`;
  return [{ rule: 'UnknownProvider', message, ...found }];
}

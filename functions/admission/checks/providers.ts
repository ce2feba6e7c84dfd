// Does anybody know where the provider of an entry listens?
import { partsOf } from '#core/credential-names.ts';
import { modelOf } from '#core/entry-model.ts';
import type { Finding } from '#core/finding.ts';
import { nearest } from '#core/nearest.ts';
import { KNOWN_PROVIDERS, knowsProvider, providerOf } from '#core/providers.ts';
import type { Check } from '../check.ts';
import { InstanceView, type ModelEntryView, toView } from '../spec-views.ts';

export const providers: Check = ({ object }) =>
  toView(InstanceView, object.spec).models.flatMap((entry, index): Finding[] => {
    const { provider } = modelOf(entry.gatewayParams ?? {});
    const at = `spec.models[${index}].gatewayParams`;
    return provider === '' ? [] : (judgeAddress(entry, at) ?? judgeProvider(provider, entry, at));
  });

/** A whole address, of which the gateway adds the end. */
function judgeAddress({ gatewayParams }: ModelEntryView, at: string): Finding[] | undefined {
  const value = gatewayParams?.apiBase;
  const ending = /\/(chat\/completions|messages)\/*$/.exec(value ?? '')?.[0];
  if (ending === undefined) return undefined;
  const message = `the gateway adds ${JSON.stringify(ending)} itself, so this address is asked for it twice; leave it out`;
  return [{ rule: 'WholeAddress', path: `${at}.apiBase`, value, message, effect: 'warn' }];
}

function judgeProvider(
  provider: string,
  { gatewayParams = {}, modelCredentials }: ModelEntryView,
  at: string,
): Finding[] {
  const { model, customLLMProvider: override, apiBase } = gatewayParams;
  const has = (name: string) => Object.hasOwn(modelCredentials?.keys ?? {}, name);
  const hasAddress = apiBase !== undefined || has('apiBase');
  const row = providerOf(provider);
  const absent = partsOf(row).filter((name) => !has(name));
  const isKnown = knowsProvider(provider);
  const meant = isKnown ? undefined : nearest(provider, KNOWN_PROVIDERS);
  const or = meant === undefined ? '' : `did you mean ${JSON.stringify(meant)}? Else `;
  const path = override === undefined ? `${at}.model` : `${at}.customLLMProvider`;
  const found = { path, value: override ?? model, effect: 'warn' } as const;
  if (!hasAddress && row.base === undefined) {
    const message = `the gateway has no address for provider ${JSON.stringify(provider)}; ${or}add a credential apiBase, or gatewayParams.apiBase`;
    return [{ rule: 'ProviderWithoutAddress', message, ...found }];
  }
  if (!hasAddress && absent.length > 0) {
    const message = `the address of provider ${JSON.stringify(provider)} is made of ${absent.join(' and ')}; add that to modelCredentials.keys, or an apiBase`;
    return [{ rule: 'ProviderWithoutAddress', message, ...found }];
  }
  // Somebody else's name before the slash is nothing to be told about, unless it looks like a slip.
  if (isKnown || (override === undefined && meant === undefined)) return [];
  const message = `the gateway does not know provider ${JSON.stringify(provider)}; ${or}check that its apiBase is OpenAI-compatible`;
  return [{ rule: 'UnknownProvider', message, ...found }];
}

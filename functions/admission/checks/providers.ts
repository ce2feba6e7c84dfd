// Does anybody know where the provider of an entry listens?
import { knowsProvider, providerOf } from '#core/providers.ts';
import type { Check } from '../check.ts';
import type { Finding } from '../finding.ts';
import { InstanceView, type ModelEntryView, toView } from '../spec-views.ts';

export const providers: Check = async ({ object }) =>
  toView(InstanceView, object.spec).models.flatMap((entry, index) =>
    judgeEntry(entry, `spec.models[${index}].gatewayParams`),
  );

function judgeEntry({ gatewayParams, modelCredentials }: ModelEntryView, at: string): Finding[] {
  const slash = gatewayParams?.model?.indexOf('/') ?? -1;
  const override = gatewayParams?.customLLMProvider;
  const provider = override ?? (slash > 0 ? gatewayParams?.model?.slice(0, slash) : undefined);
  if (provider === undefined) return [];
  const hasAddress = gatewayParams?.apiBase !== undefined || Object.hasOwn(modelCredentials?.keys ?? {}, 'apiBase');
  const found = {
    path: override === undefined ? `${at}.model` : `${at}.customLLMProvider`,
    value: override ?? gatewayParams?.model,
    effect: 'warn',
  } as const;
  if (!hasAddress && providerOf(provider).base === undefined) {
    const message = `the gateway has no address for provider ${JSON.stringify(provider)}: add a credential apiBase, or gatewayParams.apiBase`;
    return [{ rule: 'ProviderWithoutAddress', message, ...found }];
  }
  if (override === undefined || knowsProvider(override)) return [];
  return [{ rule: 'UnknownProvider', message: 'is not known: its apiBase is treated as OpenAI-compatible', ...found }];
}

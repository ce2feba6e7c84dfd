// Is a credential named that nobody would read? Legal, but it does nothing (DESIGN 7).
import { CREDENTIAL_NAMES, credentialsReadBy } from '#core/credential-names.ts';
import { modelOf } from '#core/entry-model.ts';
import type { Finding } from '#core/finding.ts';
import { didYouMean } from '#core/nearest.ts';
import { providerOf } from '#core/providers.ts';
import { toMember } from '#core/rules/secret-entries.ts';
import type { Check } from '../check.ts';
import { InstanceView, type ModelEntryView, toView } from '../spec-views.ts';

export const credentialNames: Check = ({ object }) =>
  toView(InstanceView, object.spec).models.flatMap((entry, index) =>
    Object.keys(entry.modelCredentials?.keys ?? {}).flatMap((name) => judge(entry, name, index)),
  );

function judge({ gatewayParams = {} }: ModelEntryView, name: string, index: number): Finding[] {
  const { provider } = modelOf(gatewayParams);
  const read = credentialsReadBy(providerOf(provider));
  if (read.includes(name)) return [];
  const path = `spec.models[${index}].modelCredentials.keys${toMember(name)}`;
  const found = { path, value: undefined, effect: 'warn' } as const;
  if (!CREDENTIAL_NAMES.includes(name)) {
    const advice = didYouMean(name, CREDENTIAL_NAMES) || `; remove it, or choose among ${CREDENTIAL_NAMES.join(', ')}`;
    return [
      { rule: 'UnknownCredentialName', message: `no provider reads a credential of this name${advice}`, ...found },
    ];
  }
  const message = `requests to ${JSON.stringify(provider)} do not carry it; ${ADVICE.get(name) ?? `remove it: they carry ${read.join(', ')}`}`;
  return [{ rule: 'CredentialNotRead', message, ...found }];
}

const NO_SIGNING = "give an API key of Bedrock's as apiKey: the gateway signs no requests";

const ADVICE: ReadonlyMap<string, string> = new Map([
  ['awsAccessKeyId', NO_SIGNING],
  ['awsSecretAccessKey', NO_SIGNING],
  ['vertexCredentials', 'keep an access token in the Secret as apiKey: the gateway fetches none'],
]);

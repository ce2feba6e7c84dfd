// In which order is a write judged, and by whom?
import type { Attempt } from '../admission/attempt.ts';
import type { Deps } from '../deps.ts';
import { type KubeObject, timestamp, withMeta } from '../object.ts';
import { invalid, isRefusal, type Outcome, type Refusal } from '../refusal.ts';
import type { Resource } from '../resources/resource.ts';
import { joinCauses } from '../schema/cause.ts';
import { violations } from '../schema/violations.ts';
import type { ApiRequest } from '../serve/request.ts';
import { decodeObject } from './decode.ts';
import { generatedName } from './generate-name.ts';
import { metadataCauses } from './metadata-rules.ts';

export type Judged = {
  readonly request: ApiRequest;
  readonly object: KubeObject;
  readonly old?: KubeObject;
  /** Puts back what this request may not change, after every step that could have changed it. */
  carry(object: KubeObject): KubeObject;
};

/** Mutating webhooks → defaults and system fields → rules of metadata, schema and kind → validating webhooks. */
export async function judge(deps: Deps, { request, object, old, carry }: Judged): Promise<Outcome<KubeObject>> {
  const { resource } = request;
  const operation = old === undefined ? 'CREATE' : 'UPDATE';
  const attempt: Attempt = { request, operation, object: carry(object), old };
  const mutated = await deps.admission.mutate(attempt, carry(object), (patched) => {
    const decoded = decodeObject(resource, patched, { fieldValidation: 'Ignore', warn: () => {} });
    return isRefusal(decoded) ? decoded : carry(decoded);
  });
  if (isRefusal(mutated)) return mutated;
  const final = finish(deps, request, mutated, old);
  const refusal = check(request, final, old) ?? (await deps.admission.validate({ ...attempt, object: final }));
  return refusal ?? final;
}

function finish(
  { now }: Deps,
  { resource, subresource }: ApiRequest,
  object: KubeObject,
  old?: KubeObject,
): KubeObject {
  const { name, generateName } = object.metadata;
  const named = name === undefined && generateName ? withMeta(object, { name: generatedName(generateName) }) : object;
  const { prepare, observe } = resource.strategy;
  const prepared = prepare === undefined || subresource !== undefined ? named : prepare(named, old);
  return observe === undefined || subresource !== undefined ? prepared : observe(prepared, timestamp(now()));
}

function check({ resource, warn }: ApiRequest, object: KubeObject, old: KubeObject | undefined): Refusal | undefined {
  const causes = metadataCauses(resource, object, old);
  const judgement = resource.structural?.().judge(object, old) ?? {
    causes: coreCauses(resource, object),
    warnings: [],
  };
  causes.push(...judgement.causes);
  if (judgement.warnings.length > 0) warn(joinCauses(judgement.warnings));
  if (causes.length === 0) causes.push(...(resource.strategy.check?.(object, old) ?? []));
  return causes.length === 0 ? undefined : invalid(resource, object.metadata.name ?? '', causes);
}

/** What a built-in kind's schema does not allow; its types were looked at when it was decoded. No text is no bytes there. */
function coreCauses({ schema }: Resource, object: KubeObject) {
  return violations(object, schema, { path: '', correlation: undefined }).filter(({ field, message }) => {
    return !field.startsWith('metadata') && !message.endsWith('must be of type byte: ""');
  });
}

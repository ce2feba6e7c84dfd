// A write on its way to the store: webhooks, defaults, rules, in this order.
import { randomInt } from 'node:crypto';
import type { AdmissionAttributes } from '../admission/webhooks.ts';
import { type ApiError, invalid, isApiError, type Outcome } from '../api-error.ts';
import type { Deps } from '../deps.ts';
import { type KubeObject, timestamp, withMeta } from '../object.ts';
import type { ApiRequest } from '../request/request.ts';
import { joinCauses } from '../schema/field-errors.ts';
import { coreViolations, decodeObject } from './decode.ts';
import { metadataCauses } from './metadata-rules.ts';

export type AdmitContext = {
  readonly request: ApiRequest;
  readonly object: KubeObject;
  readonly old?: KubeObject;
  /** Puts back what this request may not change, after every step that could have changed it. */
  preserve(object: KubeObject): KubeObject;
};

/** Mutating webhooks → defaults and system fields → rules of metadata, schema and kind → validating webhooks. */
export async function admitAndValidate(
  deps: Deps,
  { request, object, old, preserve }: AdmitContext,
): Promise<Outcome<KubeObject>> {
  const { resource } = request;
  const operation = old === undefined ? 'CREATE' : 'UPDATE';
  const attempt: AdmissionAttributes = { request, operation, object: preserve(object), old };
  const mutated = await deps.admission.mutate(attempt, preserve(object), (patched) => {
    const decoded = decodeObject(resource, patched, { fieldValidation: 'Ignore', warn: () => {} });
    return isApiError(decoded) ? decoded : preserve(decoded);
  });
  if (isApiError(mutated)) return mutated;
  const final = finish(deps, request, mutated, old);
  const error = check(request, final, old) ?? (await deps.admission.validate({ ...attempt, object: final }));
  return error ?? final;
}

function finish(
  { now }: Deps,
  { resource, subresource }: ApiRequest,
  object: KubeObject,
  old?: KubeObject,
): KubeObject {
  const { name, generateName } = object.metadata;
  const named = name === undefined && generateName ? withMeta(object, { name: generatedName(generateName) }) : object;
  if (subresource !== undefined) return named;
  const { prepareForCreate, prepareForUpdate, updateStatus } = resource.strategy;
  const prepared = (old === undefined ? prepareForCreate?.(named) : prepareForUpdate?.(named, old)) ?? named;
  return updateStatus?.(prepared, timestamp(now())) ?? prepared;
}

function check({ resource, warn }: ApiRequest, object: KubeObject, old: KubeObject | undefined): ApiError | undefined {
  const causes = metadataCauses(resource, object, old);
  const validation = resource.structural?.().validate(object, old) ?? {
    causes: coreViolations(object, resource.schema).filter(({ field }) => !field.startsWith('metadata')),
    warnings: [],
  };
  causes.push(...validation.causes);
  if (validation.warnings.length > 0) warn(joinCauses(validation.warnings));
  if (causes.length === 0) causes.push(...(resource.strategy.validate?.(object, old) ?? []));
  return causes.length === 0 ? undefined : invalid(resource, object.metadata.name ?? '', causes);
}

const letters = 'bcdfghjklmnpqrstvwxz2456789';

/** The base, cut to 58 characters, and five more that spell no words. */
function generatedName(base: string): string {
  return base.slice(0, 58) + Array.from({ length: 5 }, () => letters[randomInt(letters.length)]).join('');
}

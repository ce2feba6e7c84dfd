// How many replicas does a Deployment want, as autoscaling/v1 Scale?
import { mergePatch } from '../codec/merge-patch.ts';
import type { Deps } from '../deps.ts';
import { objectAt } from '../kinds/member-of.ts';
import { type KubeObject, withMember } from '../object.ts';
import { get } from '../read/get.ts';
import { badRequest, isRefusal, type Outcome } from '../refusal.ts';
import { isObject, type JsonObject } from '../schema/json.ts';
import { decodeBody, mediaType } from '../serve/body.ts';
import type { ApiRequest } from '../serve/request.ts';
import { update } from './update.ts';

export function readScale(deps: Deps, request: ApiRequest): Outcome<JsonObject> {
  const object = get(deps, request);
  return isRefusal(object) ? object : toScale(object);
}

/** PUT, or a merge patch, of a Scale. Nothing runs here: only the wanted number changes. */
export async function writeScale(deps: Deps, request: ApiRequest): Promise<Outcome<JsonObject>> {
  const type = request.verb === 'patch' ? 'application/json' : mediaType(request.contentType);
  const body = decodeBody(request.body, type);
  if (isRefusal(body)) return body;
  const object = await update(
    deps,
    { ...request, subresource: undefined },
    {
      isPut: false,
      next: (old) => {
        const wanted = request.verb === 'patch' ? mergePatch(toScale(old), body) : body;
        const replicas = isObject(wanted.spec) ? (wanted.spec.replicas ?? 0) : undefined;
        if (typeof replicas !== 'number' || replicas < 0) return badRequest('spec.replicas must be a number from 0');
        return withMember(old, 'spec', { ...objectAt(old, 'spec'), replicas });
      },
    },
  );
  return isRefusal(object) ? object : toScale(object);
}

function toScale(object: KubeObject): JsonObject {
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  const { replicas, selector } = objectAt(object, 'spec');
  const labels = Object.entries(objectAt(selector, 'matchLabels')).map(([key, value]) => `${key}=${value}`);
  return {
    kind: 'Scale',
    apiVersion: 'autoscaling/v1',
    metadata: { name, namespace, uid, resourceVersion, creationTimestamp },
    spec: replicas === 0 ? {} : { replicas },
    status: { replicas: objectAt(object, 'status').replicas ?? 0, selector: labels.join(',') },
  };
}

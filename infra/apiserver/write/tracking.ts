// Which fields can a request not own, because it cannot write them?
import type { Resource } from '../resources/resource.ts';

/** The main resource never writes `status` where that is a subresource of its own; `/status` writes nothing else. */
export function ignoredFields(resource: Resource, subresource: string | undefined): string[][] {
  if (!resource.subresources.includes('status')) return [];
  return subresource === 'status' ? [['spec']] : [['status']];
}

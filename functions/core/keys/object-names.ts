// Names of the objects that the reconciler creates: Secrets, snapshots, owned keys, events. A name that is too long is
// cut.
import type { Hash } from '../ports/platform.ts';

/** The maximum length that Kubernetes accepts for these names. */
export const MAX_NAME = 253;
/** Hex digits of a SHA-256 that distinguish two long names with the same beginning. */
const TAIL = 10;

/** `<name>-key` unless the template names the Secret (DESIGN 10, Names). */
export function keySecretName(key: string, template: string | undefined, hash: Hash): string {
  return template ?? shorten(key, '-key', hash);
}

/** The ConfigMap that publishes a snapshot. An instance's name has at most 40 characters, so this name always fits. */
export function snapshotName(instance: string, hash: string): string {
  return `${instance}-${hash}`;
}

/** Deployment, Service, disruption budget and autoscaler of an instance's gateway: at most 48 characters. */
export function gatewayName(instance: string): string {
  return `${instance}${GATEWAY}`;
}

/**
 * The Knative Service of a gateway. Knative creates a plain Service of the same name, so the name must differ from that
 * of the Deployment's Service.
 */
export function knativeServiceName(instance: string): string {
  return `${instance}${SERVING}`;
}

/** The instance whose gateway an object of this kind and name would run; undefined: none. */
export function instanceOfWorkload(kind: string, name: string): string | undefined {
  const suffix = kind === 'Deployment' ? GATEWAY : kind === 'Service' ? SERVING : undefined;
  return suffix !== undefined && name.endsWith(suffix) ? name.slice(0, -suffix.length) : undefined;
}

const GATEWAY = '-gateway';
const SERVING = '-serving';

/** The name of an event: the same for the same event about the same object, so that it is reported once. */
export function eventName(object: string, uid: string, what: string, hash: Hash): string {
  return shorten(object, `.${hash(`${uid}/${what}`).slice(0, 16)}`, hash);
}

/** `name` + `suffix` in at most 253 characters: a longer name is cut and gets a hash of the whole name. */
function shorten(name: string, suffix: string, hash: Hash): string {
  if (name.length + suffix.length <= MAX_NAME) return name + suffix;
  const cut = name.slice(0, MAX_NAME - suffix.length - TAIL - 1).replace(/(?<![^a-z0-9])[^a-z0-9]+$/, '');
  return `${cut}-${hash(name).slice(0, TAIL)}${suffix}`;
}

// Our API groups, and the labels, annotations and names that we put on objects.

export const INSTANCE_GROUP = 'instance.gateway-operator.dev';
export const AUTH_GROUP = 'auth.gateway-operator.dev';
export const VERSION = 'v1alpha1';

export const INSTANCE_API_VERSION = `${INSTANCE_GROUP}/${VERSION}` as const;
export const AUTH_API_VERSION = `${AUTH_GROUP}/${VERSION}` as const;

/** The field manager of each of our writes, server-side apply included. */
export const FIELD_MANAGER = 'gateway-operator';

/** The one finalizer: on all four kinds, before anything exists that needs cleaning. */
export const FINALIZER = 'gateway-operator.dev/cleanup';

/** The label that Kubernetes recommends for the tool that manages an object. */
const MANAGED_BY_LABEL = 'app.kubernetes.io/managed-by';
export const MANAGED_BY = 'gateway-operator';

/** Marks objects that the operator made and may delete; together with an owner reference or a matching key hash. */
export const OWNED_LABEL = 'gateway-operator.dev/managed';
export const OWNED_LABEL_VALUE = 'true';
export const OWNED_LABELS = { [MANAGED_BY_LABEL]: MANAGED_BY, [OWNED_LABEL]: OWNED_LABEL_VALUE };

/** On the snapshots of an instance: its uid, so that they are found among those of many others. */
export const INSTANCE_LABEL = 'gateway-operator.dev/instance-uid';

/**
 * On the Secret of a key that outlived its VirtualKey (`deletionPolicy: Retain`), until one adopts it; its value is
 * `true`.
 */
export const RETAINED_LABEL = 'gateway-operator.dev/retained';

/**
 * On the objects that run a gateway: the version of the operator that wrote them. An earlier version leaves them alone.
 */
export const VERSION_ANNOTATION = 'gateway-operator.dev/version';

/** On the Pods of a gateway: hash of the snapshot that they serve. */
export const SNAPSHOT_ANNOTATION = 'gateway-operator.dev/snapshot';

/**
 * On the Pods of a gateway: hash of the addresses of its database and store, and of its authorities, so that new Pods
 * start when they change.
 */
export const CONNECTIONS_ANNOTATION = 'gateway-operator.dev/connections';

/**
 * On the Deployment or Knative Service of a gateway: hash of all that its Pods read of these Secrets. New logins change
 * it, and start no Pod.
 */
export const LOGINS_ANNOTATION = 'gateway-operator.dev/logins';

/** On a VirtualKey: the user that requested it. Admission writes it on create and preserves it on update. */
export const REQUESTED_BY_ANNOTATION = 'gateway-operator.dev/requested-by';

/** On a VirtualKey: each new text replaces the key's value immediately. */
export const ROTATE_ANNOTATION = 'auth.gateway-operator.dev/rotate';

/** On a GatewayInstance: `allowed` lets two model entries share one credential secret. */
export const SHARED_CREDENTIALS_ANNOTATION = 'instance.gateway-operator.dev/shared-credentials';
export const SHARED_CREDENTIALS_ALLOWED = 'allowed';

/** On a GatewayInstance: the share of it that a run may remove by itself, e.g. `50%`. */
export const DELETION_SHARE_ANNOTATION = 'instance.gateway-operator.dev/deletion-share';

/** On a GatewayInstance: the uid of the closed instance whose ledger this one continues. */
export const ADOPT_LEDGER_ANNOTATION = 'instance.gateway-operator.dev/adopt-ledger';

/**
 * The category that lists all four kinds: `kubectl get llm-gateway`. (`gateway` would take `kubectl get gateway` from
 * Gateway API and Istio.)
 */
export const CATEGORY = 'llm-gateway';

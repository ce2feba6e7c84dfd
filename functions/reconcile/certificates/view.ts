// What does reconcile know about the certificate of admission, when it plans?
import type { KubeObject, Resource } from '#core/ports/cluster.ts';
import type { Issuer, Pair, Validity } from '#core/ports/issuer.ts';
import type { Millis } from '#core/ports/money.ts';

/** Where the certificate is kept and who must trust it. A platform without these leaves certificates to others. */
export interface CertificateDeps extends Terms {
  readonly issuer: Issuer;
  /** The Service by which API servers call admission. */
  readonly service: { readonly namespace: string; readonly name: string };
  /** Name of the Secret, in the namespace of the Service. */
  readonly secret: string;
  /** Name of both webhook configurations. Only their entries that call the Service are ours. */
  readonly webhooks: string;
}

export interface Terms {
  /** From issuing to expiry. Renewal is due at two thirds of it. */
  readonly lifetime: Millis;
  /** How long API servers may take to learn of a change of the webhook configurations. */
  readonly settle: Millis;
  /** How long Pods may take to show a certificate that lies in the Secret: so long the CA before it stays trusted. */
  readonly overlap: Millis;
}

const HOUR = 3_600_000;

/** Watches of API servers lag by a second, the kubelet by two minutes; a busy cluster by more. */
export const termsOf = (lifetime: Millis): Terms => ({
  lifetime,
  settle: Math.min(60_000, lifetime / 30),
  overlap: Math.min(HOUR, lifetime / 6),
});

/** A pair that is one, and when it holds. */
export interface Certificate extends Pair, Validity {}

/** What the Secret should hold. */
export interface Contents {
  readonly serving: Certificate;
  /** Serves as soon as every API server trusts its CA. */
  readonly next?: Certificate | undefined;
  /** CAs of those that served before, oldest first: Pods may still show what they signed. */
  readonly previous: ReadonlyArray<string>;
  /** Since when `serving` lies in the Secret. */
  readonly servingSince?: Millis | undefined;
  /** Since when all configurations trust the CA of `next`. */
  readonly trustedSince?: Millis | undefined;
}

export interface OwnSecret extends Omit<Contents, 'serving'> {
  readonly state: 'own';
  readonly resourceVersion: string;
  /** Absent: damaged, or for other names. */
  readonly serving?: Certificate;
}

export type SecretView =
  | { readonly state: 'absent' }
  | OwnSecret
  /** Made by cert-manager or by hand: never written to. */
  | { readonly state: 'foreign'; readonly by: 'cert-manager' | 'somebody else'; readonly serving?: Certificate };

/** A webhook configuration with entries that call our Service. */
export interface HookView {
  readonly resource: Resource;
  readonly object: KubeObject;
  /** Per entry of ours, the CAs that it trusts. */
  readonly bundles: ReadonlyArray<ReadonlyArray<string>>;
}

export interface View {
  readonly secret: SecretView;
  readonly hooks: ReadonlyArray<HookView>;
  /** Issued by this run, and nowhere but in its memory yet. */
  readonly fresh?: Certificate | undefined;
}

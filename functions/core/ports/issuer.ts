// Certificates: who makes them, and who says whether one is good.
import type { Millis } from './money.ts';

/** A certificate and its private key, as PEM texts. */
export interface Signed {
  readonly cert: string;
  readonly key: string;
}

/** `ca` signed `cert`, of which `key` is the private key. */
export interface Pair extends Signed {
  readonly ca: string;
}

/** When a certificate holds. */
export interface Validity {
  readonly from: Millis;
  readonly until: Millis;
}

/** `name` is the CA's common name: what people see who look at a certificate. */
export type AuthorityOrder = Validity & { readonly name: string };

export interface Order extends Validity {
  readonly authority: Signed;
  /** DNS names and IP addresses of the server. */
  readonly names: ReadonlyArray<string>;
}

/** Times are cut to whole seconds. */
export interface Issuer {
  /** A CA, which signs itself. */
  issueAuthority(order: AuthorityOrder): Promise<Signed>;
  /** A serving certificate that the CA signs. */
  issue(order: Order): Promise<Pair>;
  /** When both certificates hold; undefined where it is no pair: something is no PEM, the CA did not sign it, the key is another's, a name is missing. */
  inspect(pair: Pair, names: ReadonlyArray<string>): Validity | undefined;
  /** The certificates of a bundle, one PEM text each, in one form; what is none is left out. */
  split(bundle: string): ReadonlyArray<string>;
}

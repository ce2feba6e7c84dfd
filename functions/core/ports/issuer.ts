// The issuer of certificates, which also inspects them.
import type { Millis } from './money.ts';

/** A certificate and its private key, as PEM texts. */
export interface CertificateAndKey {
  readonly cert: string;
  readonly key: string;
}

/** A certificate with its private key, and the certificate of the CA that signed it. */
export interface ServingCertificate extends CertificateAndKey {
  readonly ca: string;
}

/** The time in which a certificate is valid. */
export interface Validity {
  readonly from: Millis;
  readonly until: Millis;
}

/** `name` is the CA's common name, which people see in a certificate. */
export type AuthorityOrder = Validity & { readonly name: string };

export interface CertificateOrder extends Validity {
  readonly authority: CertificateAndKey;
  /** DNS names and IP addresses of the server. */
  readonly names: ReadonlyArray<string>;
}

/** Times are cut to whole seconds. */
export interface Issuer {
  /** A CA, which signs itself. */
  issueAuthority(order: AuthorityOrder): Promise<CertificateAndKey>;
  /** A serving certificate that the CA signs. */
  issue(order: CertificateOrder): Promise<ServingCertificate>;
  /**
   * Returns the time in which certificate and CA are both valid. Undefined if they do not fit: no PEM, not signed by
   * the CA, the key of another certificate, or a name is missing.
   */
  inspect(pair: ServingCertificate, names: ReadonlyArray<string>): Validity | undefined;
  /** Splits a bundle into its certificates, one normalized PEM text each; other content is left out. */
  split(bundle: string): ReadonlyArray<string>;
}

// Snapshots: the configuration of a gateway, without Kubernetes types and secret values (DESIGN 2 and 6).
import * as z from 'zod';
import { err, ok, type Result } from '../failure/result.ts';

/** Decimal dollars, exact to 10^-18. */
const Price = z.string().regex(/^(0|[1-9][0-9]*)(\.[0-9]{1,18})?$/);

/**
 * Decimal dollars per million tokens. An absent rate is that of the general kind: the rate of input for cached input,
 * audio and images in the prompt; the rate of output for reasoning, audio and images in the answer.
 */
export const WrittenRates = z.object({
  input: Price,
  /** Absent: the price is for embeddings, which have no output. */
  output: Price.optional(),
  cachedInput: Price.optional(),
  /** Tokens written to the provider's cache, for minutes and for an hour. */
  cacheWrite: Price.optional(),
  cacheWriteLong: Price.optional(),
  reasoning: Price.optional(),
  inputAudio: Price.optional(),
  cachedAudio: Price.optional(),
  outputAudio: Price.optional(),
  inputImage: Price.optional(),
  cachedImage: Price.optional(),
  outputImage: Price.optional(),
  /** Dollars per million requests, in addition. */
  request: Price.optional(),
});

/** Rates of requests with prompts of more than `above` tokens, for all their tokens. */
export const WrittenTier = WrittenRates.extend({ above: z.number().int() });

/** Where a credential is: in a Secret, which the platform mounts, under a key. */
const CredentialRef = z.object({ secret: z.string(), secretKey: z.string() });

export const SnapshotEntry = z.object({
  modelName: z.string(),
  identifier: z.string(),
  /**
   * `customLLMProvider`, else the part before the first slash of `gatewayParams.model`. Decides dialect and address.
   */
  provider: z.string(),
  /** The provider's name of the model: the rest after the first slash. */
  model: z.string(),
  /** `gatewayParams.apiBase` of a model entry without credentials. */
  apiBase: z.string().optional(),
  /** The Secret and its key by the name of the credential (`apiKey`, `apiBase`, …). */
  credentials: z.record(z.string(), CredentialRef),
  requiresAuth: z.boolean(),
  /** Without an input price the model entry has no price. */
  price: WrittenRates.extend({ tiers: z.array(WrittenTier).optional() }).optional(),
  /** Decimal dollars for each use that the provider counts. */
  toolCosts: z.object({ webSearch: Price.optional() }).optional(),
  weight: z.number().int(),
  priority: z.number().int(),
  rpm: z.number().int().optional(),
  tpm: z.number().int().optional(),
  /** Milliseconds for one attempt. */
  timeout: z.number().int().optional(),
  maxInputTokens: z.number().int().optional(),
  maxOutputTokens: z.number().int().optional(),
});

/** Grows by one with each change that a gateway of the previous version would misread. */
const SNAPSHOT_VERSION = 1;

export const Snapshot = z.object({
  /** A gateway that does not know this version keeps its previous snapshot. */
  version: z.literal(SNAPSHOT_VERSION),
  instance: z.object({ uid: z.string(), namespace: z.string(), name: z.string() }),
  /** The line for people whose key or budget is refused. */
  blockedMessage: z.string().optional(),
  /** Providers may store what VirtualKeys send, and continue it. Absent: no. */
  storeResponses: z.boolean().optional(),
  routing: z.object({
    strategy: z.string(),
    retries: z.number().int(),
    /** Milliseconds. */
    timeouts: z.object({ connect: z.number(), firstByte: z.number(), idle: z.number(), total: z.number() }),
    cooldown: z.object({ failures: z.number().int(), within: z.number(), duration: z.number() }),
  }),
  models: z.array(SnapshotEntry),
});

export type WrittenRates = z.infer<typeof WrittenRates>;
export type WrittenTier = z.infer<typeof WrittenTier>;
export type SnapshotEntry = z.infer<typeof SnapshotEntry>;
export type Snapshot = z.infer<typeof Snapshot>;

const Versioned = z.object({ version: z.number() });

/** The snapshot, or the reason why this version cannot read it. */
export function readSnapshot(text: string): Result<Snapshot, string> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return err('is not JSON');
  }
  const read = Snapshot.safeParse(json);
  if (read.success) return ok(read.data);
  const { version } = Versioned.safeParse(json).data ?? {};
  if (version !== undefined && version !== SNAPSHOT_VERSION) {
    const made = version > SNAPSHOT_VERSION ? 'a later' : 'an earlier';
    return err(
      `is a snapshot of version ${version}, but this gateway reads ${SNAPSHOT_VERSION}: ${made} version of the operator wrote it; run the gateway of that version`,
    );
  }
  const [issue] = read.error.issues;
  return err(`is not a snapshot: ${issue?.path.join('.')}: ${issue?.message}`);
}

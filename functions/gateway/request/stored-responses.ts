// Stored responses: a VirtualKey may refer only to what it has stored itself, and only if its instance lets providers
// store (decision 0034).
import type { Failure } from '#core/failure/failure.ts';
import { err, ok, type Result } from '#core/failure/result.ts';
import type { Snapshot } from '#core/models/snapshot.ts';
import type { Mac } from '#core/ports/platform.ts';
import type { Caller } from '../caller/authenticate.ts';
import type { GatewayDependencies } from '../deps.ts';
import { type MarkedId, NOTHING_STORED, type StoredState } from '../wire/prompt/stored-state.ts';
import { refusal } from '../wire/prompt/unmetered-features.ts';
import type { ModelRequest } from '../wire/request.ts';

type Owner = Pick<Caller, 'secret'>;
type StoredId = Pick<MarkedId, 'id' | 'modelEntryMark'>;

/** Hex digits of the MAC in a mark (128 bits). */
const MAC_LENGTH = 32;

/**
 * The id that the client gets: the provider's id, the mark of the model entry that created it, and a MAC that only
 * gateways can compute.
 */
export function toMarkedId(mac: Mac, owner: Owner, { id, modelEntryMark }: StoredId): string {
  return `${id}.gw${modelEntryMark}${macOf(mac, owner, { id, modelEntryMark })}`;
}

function macOf(mac: Mac, { secret }: Owner, { id, modelEntryMark }: StoredId): string {
  return mac(secret, `${modelEntryMark} ${id}`).slice(0, MAC_LENGTH);
}

export function createCheckStoredState({ hash, mac }: Pick<GatewayDependencies, 'hash' | 'mac'>) {
  /** Checks the references of a request. Refuses a reference to what this VirtualKey has not stored. */
  return function checkStoredState(
    request: ModelRequest,
    owner: Owner,
    { storeResponses = false }: Pick<Snapshot, 'storeResponses'>,
  ): Result<ModelRequest, Failure> {
    const { stored } = request;
    const { file, speech } = stored;
    if (speech !== undefined) return err(refusal(speech, NO_SPEECH));
    if (file !== undefined) return err(refusal(file, NO_FILE));
    // The references are dropped: there may be very many.
    const checked = { ...request, stored: NOTHING_STORED };
    if (!storeResponses) {
      const refused = storageFailureOf(stored);
      return refused === undefined ? ok(checked) : err(refused);
    }
    const foreignReference = stored.unmarkedReference ?? stored.ids.find((one) => !isOwn(one, owner))?.param;
    return foreignReference === undefined
      ? ok({ ...checked, store: undefined })
      : err(refusal(foreignReference, FOREIGN));
  };

  /** Compares hashes, because the time of that comparison reveals nothing about the MAC. */
  function isOwn({ mac: given, ...of }: MarkedId, owner: Owner): boolean {
    return hash(given) === hash(macOf(mac, owner, of));
  }
}

/** The refusal if providers may store nothing. */
function storageFailureOf({ asksToStore, reference }: StoredState): Failure | undefined {
  if (asksToStore) return refusal('store', `must be false or absent. ${ALLOW}`);
  if (reference === undefined) return undefined;
  return refusal(reference, `must not refer to a stored response or item. ${SEND} ${ALLOW}`);
}

const SEND =
  'Send the whole conversation: each message with its content, and reasoning with its encrypted_content (request it by "include": ["reasoning.encrypted_content"]).';
const ALLOW =
  'Providers store nothing for this gateway. The platform team can allow it (spec.storeResponses of the GatewayInstance).';
const FOREIGN = `must be an id that this gateway sent to this VirtualKey. ${SEND}`;
const NO_FILE =
  'must not refer to a file by its id, or by an address that is not on the web: its owner is unknown. Send the content of the file.';
const NO_SPEECH = 'must not refer to speech by its id: its owner is unknown. Send the transcript as content.';

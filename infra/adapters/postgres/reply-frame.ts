// The messages of a database, split and checked before the client library reads them.
import { AnswerRefused } from '../backends/reply-memory.ts';
import { createAuthentication } from './authentication.ts';

/** The maximum size of a message. The largest is a row with a policy, whose object fits etcd's 1.5 MiB. */
const MAX_MESSAGE = 8 * 1024 * 1024;
/** The maximum columns of a row: many columns take far more memory than their bytes. */
const MAX_COLUMNS = 64;

export const CHECK_ADVICE = ': check that the Secret names the right server';

/**
 * The maximum number of messages other than rows while the connection begins, or between two statements: they may have
 * only 5 bytes each, but take the client library far more memory.
 */
const MAX_OTHERS = 1000;

const [AUTHENTICATION, DATA_ROW, ROW_DESCRIPTION, ERROR, NOTICE, READY] = [0x52, 0x44, 0x54, 0x45, 0x4e, 0x5a];
/**
 * The messages that can come (PostgreSQL, Message Formats) while the connection begins, while a statement is answered,
 * and at any time. Our statements use no COPY and no LISTEN, are never empty, and read whole replies.
 */
const [BEGINNING, ANSWER, ANY_TIME] = ['RKZ', '12nTDCZ', 'ENS'];
/** Type and length. */
const HEAD = 5;
/** Bytes that are read with the head: the count of columns, the code of an authentication request. */
const HEAD_EXTRA: Readonly<Record<number, number>> = { [DATA_ROW]: 2, [ROW_DESCRIPTION]: 2, [AUTHENTICATION]: 4 };
const MAX_HEAD = 9;

const unexpectedMessage = () => new AnswerRefused(`sends a message that belongs to no statement${CHECK_ADVICE}`);
const invalidMessage = () => new AnswerRefused(`sends data that is no PostgreSQL message${CHECK_ADVICE}`);

export interface FrameResult {
  /**
   * The chunk, split after each message: if a message has a wrong length, the client library reads beyond its end, but
   * never beyond the piece.
   */
  readonly pieces: ReadonlyArray<Uint8Array>;
  /** Rows that begin in the chunk. */
  readonly rows: number;
}

/**
 * Follows the messages of a connection. `beginStatement`: a statement was sent. `read` throws AnswerRefused if
 * PostgreSQL would not send such data.
 */
export function createFrame() {
  const head = new DataView(new ArrayBuffer(MAX_HEAD));
  const authentication = createAuthentication();
  const [values, fields] = [createValues(), createFields()];
  let [filled, rest, otherMessages] = [0, 0, 0];
  let hasBegun = false;
  /** Statements without a ready message, which a failed statement gets after its error. */
  let pendingStatements = 0;
  let body: Body | undefined;
  const begin = (): void => {
    const type = head.getUint8(0);
    rest = restOf(head);
    otherMessages += type === DATA_ROW ? 0 : 1;
    if (otherMessages > MAX_OTHERS)
      throw new AnswerRefused(`sends more than ${MAX_OTHERS} messages beside rows${CHECK_ADVICE}`);
    const expected = !hasBegun ? BEGINNING : pendingStatements > 0 ? ANSWER : '';
    if (!(expected + ANY_TIME).includes(String.fromCharCode(type))) throw unexpectedMessage();
    if (type === READY && hasBegun) pendingStatements -= 1;
    if (type === READY) hasBegun = true;
    if (type === AUTHENTICATION) authentication.check(head.getInt32(HEAD));
    if (type === DATA_ROW) values.begin(head.getInt16(HEAD));
    body = type === DATA_ROW ? values : type === ERROR || type === NOTICE ? fields : undefined;
    filled = 0;
  };
  const read = (chunk: Uint8Array): FrameResult => {
    const pieces: Uint8Array[] = [];
    let [rows, cut] = [0, 0];
    for (let at = 0; at < chunk.length; ) {
      if (rest > 0) {
        const end = Math.min(at + rest, chunk.length);
        rest -= end - at;
        body?.read(chunk.subarray(at, end));
        at = end;
      } else {
        head.setUint8(filled, chunk[at] ?? 0);
        at += 1;
        filled += 1;
        if (filled < HEAD || filled < HEAD + (HEAD_EXTRA[head.getUint8(0)] ?? 0)) continue;
        begin();
        if (body === values) rows += 1;
      }
      if (rest > 0) continue;
      body?.end();
      pieces.push(chunk.subarray(cut, at));
      cut = at;
    }
    if (cut < chunk.length) pieces.push(chunk.subarray(cut));
    return { pieces, rows };
  };
  return {
    read,
    beginStatement: (): void => {
      pendingStatements += 1;
      otherMessages = 0;
    },
  };
}

/** The number of bytes of the message after its head. */
function restOf(head: DataView): number {
  const rest = head.getInt32(1) - 4 - (HEAD_EXTRA[head.getUint8(0)] ?? 0);
  if (rest < 0) throw invalidMessage();
  if (rest > MAX_MESSAGE)
    throw new AnswerRefused(`sends a message of more than ${MAX_MESSAGE / 1024} KiB${CHECK_ADVICE}`);
  const hasColumns = [DATA_ROW, ROW_DESCRIPTION].includes(head.getUint8(0));
  if (hasColumns && (head.getInt16(HEAD) > MAX_COLUMNS || head.getInt16(HEAD) < 0))
    throw new AnswerRefused(`sends rows of more than ${MAX_COLUMNS} columns${CHECK_ADVICE}`);
  return rest;
}

/** The content of a message, in parts. Throws if the client library would read beyond the message. */
interface Body {
  read(bytes: Uint8Array): void;
  end(): void;
}

/** The values of a row: each is a length and its bytes, or −1 for null. */
function createValues(): Body & { begin(count: number): void } {
  let [left, length, filled, skip] = [0, 0, 0, 0];
  return {
    begin: (count) => {
      left = count;
    },
    read(bytes) {
      for (let at = 0; at < bytes.length; ) {
        const skipped = Math.min(skip, bytes.length - at);
        skip -= skipped;
        at += skipped;
        if (skipped > 0) continue;
        length = (length << 8) | (bytes[at] ?? 0);
        at += 1;
        filled += 1;
        if (filled < 4) continue;
        if (length < -1) throw invalidMessage();
        skip = Math.max(0, length);
        left -= 1;
        [length, filled] = [0, 0];
      }
    },
    end() {
      if (left !== 0 || filled > 0 || skip > 0) throw invalidMessage();
    },
  };
}

/**
 * The fields of an error or a notice: each is a type and a text, then a zero ends them. Without that zero the client
 * library would search forever.
 */
function createFields(): Body {
  let [isText, hasEnded] = [false, false];
  return {
    read(bytes) {
      for (const byte of bytes) {
        if (hasEnded) throw invalidMessage();
        hasEnded = !isText && byte === 0;
        isText = byte !== 0;
      }
    },
    end() {
      if (!hasEnded) throw invalidMessage();
      [isText, hasEnded] = [false, false];
    },
  };
}

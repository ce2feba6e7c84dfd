// The replies that a Redis may send, checked before the client library reads them: to what was asked, of a bounded
// size, in the shapes that we ask for.
import { AnswerRefused } from '../backends/reply-memory.ts';

const MIB = 1024 * 1024;
/** A reply to a process that asks the stores of many owners. */
export const MAX_REPLY = MIB;
/** A reply to a gateway, whose store is its own: an account of very many counters is the largest. */
export const MAX_OWN_REPLY = 64 * MIB;
/**
 * All replies before a connection is ready: how the server is, which the library asks again while the server is
 * loading.
 */
const MAX_HANDSHAKE = 64 * 1024;
/** A status or an error. */
const MAX_LINE = 16 * 1024;
/** Elements of a list. The library makes room for as many as are announced. */
const MAX_ELEMENTS = 64;

const [CR, LF, PLUS, MINUS, COLON, DOLLAR, STAR] = [0x0d, 0x0a, 0x2b, 0x2d, 0x3a, 0x24, 0x2a];
const CHECK = ': check that the Secret names the right server';
const tooMuch = ({ max }: ReplyState) => new AnswerRefused(`answers with more than ${max / 1024} KiB${CHECK}`);
const notRedis = () => new AnswerRefused(`answers with what is no reply of a Redis${CHECK}`);

/** The state of a connection: which part of which reply comes next. */
interface ReplyState {
  /** Bytes of a text that are left, its end included. */
  text: number;
  /** The kind of the line that is being read; 0: none. */
  kind: number;
  line: string;
  /** The last byte was the first of a line's end. */
  isEnding: boolean;
  /** Elements of a list that are left. */
  elements: number;
  /** Bytes of this reply; before the connection is ready: of all. */
  bytes: number;
  max: number;
  isReady: boolean;
  /** Commands without a reply. */
  awaited: number;
}

/**
 * `asked`: a command was sent. `ready`: the server may be asked for other things than how it is. `read` throws
 * AnswerRefused at what may not pass. RESP2: simple texts, errors, numbers, texts, and one level of lists.
 */
export function createReplyGuard(maxReply: number) {
  const state: ReplyState = {
    text: 0,
    kind: 0,
    line: '',
    isEnding: false,
    elements: 0,
    awaited: 0,
    bytes: 0,
    max: MAX_HANDSHAKE,
    isReady: false,
  };
  return {
    asked: (): void => {
      state.awaited += 1;
    },
    ready: (): void => {
      Object.assign(state, { bytes: 0, max: maxReply, isReady: true });
    },
    /** Whether a reply has ended with it. */
    read: (chunk: Uint8Array): boolean => {
      for (let at = 0; at < chunk.length; ) at += step(state, chunk, at);
      return state.kind === 0 && state.text === 0 && state.elements === 0;
    },
  };
}

/** Reads on at this place; answers by how many bytes. */
function step(state: ReplyState, chunk: Uint8Array, at: number): number {
  const read = state.text > 0 ? Math.min(state.text, chunk.length - at) : 1;
  state.bytes += read;
  if (state.bytes > state.max) throw tooMuch(state);
  if (state.text > 0) {
    state.text -= read;
    if (state.text === 0) endElement(state);
    return read;
  }
  const byte = chunk[at] ?? 0;
  if (state.kind === 0) begin(state, byte);
  // The library ends a line at its first CR, wherever LF is.
  else if (state.isEnding !== (byte === LF) || state.line.length >= MAX_LINE) throw notRedis();
  else if (state.isEnding) endLine(state);
  else if (byte === CR) state.isEnding = true;
  else state.line += isNumber(state.kind) ? String.fromCharCode(byte) : '.';
  return 1;
}

const isNumber = (kind: number): boolean => kind === DOLLAR || kind === STAR;

function begin(state: ReplyState, kind: number): void {
  const isFirst = state.elements === 0;
  if (isFirst && state.awaited === 0) throw new AnswerRefused(`answers what nobody asked${CHECK}`);
  if (![PLUS, MINUS, COLON, DOLLAR].includes(kind) && !(kind === STAR && isFirst)) throw notRedis();
  Object.assign(state, { kind, line: '', isEnding: false });
}

function endLine(state: ReplyState): void {
  const { kind, line } = state;
  state.kind = 0;
  if (isNumber(kind) && !/^(-1|\d{1,9})$/.test(line)) throw notRedis();
  const count = isNumber(kind) ? Number(line) : -1;
  if (kind === DOLLAR && count > state.max) throw tooMuch(state);
  if (kind === DOLLAR && count >= 0) state.text = count + 2;
  else if (kind === STAR && count > MAX_ELEMENTS) throw notRedis();
  else if (kind === STAR && count > 0) state.elements = count;
  else endElement(state);
}

function endElement(state: ReplyState): void {
  state.elements = Math.max(0, state.elements - 1);
  if (state.elements > 0) return;
  if (state.isReady) state.bytes = 0;
  state.awaited -= 1;
}

// Are two quantities of Kubernetes the same, like "0.5" and "500m"? The API server writes them in a form of its own.

const DECIMAL = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];
const BINARY = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];
const NANO = 9;

/** False for what is no quantity. */
export function isSameQuantity(left: unknown, right: unknown): boolean {
  const [a, b] = [toNano(left), toNano(right)];
  return a !== undefined && a === b;
}

/** In billionths, exactly; finer ones are none that anybody writes. */
function toNano(value: unknown): bigint | undefined {
  const [, whole = '', fraction = '', suffix = ''] =
    /^([0-9]+)(?:\.([0-9]{1,9}))?([A-Za-z]{0,2})$/.exec(String(value)) ?? [];
  const [decimal, binary] = [DECIMAL.indexOf(suffix), BINARY.indexOf(suffix)];
  if (whole === '' || (decimal === -1 && binary === -1)) return undefined;
  const nano = BigInt(whole + fraction.padEnd(NANO, '0'));
  if (decimal === -1) return nano * 1024n ** BigInt(binary);
  const exponent = (decimal - DECIMAL.indexOf('')) * 3;
  return exponent >= 0 ? nano * 10n ** BigInt(exponent) : nano / 10n ** BigInt(-exponent);
}

// The share of an instance that a run may remove by itself, and how it is written.

/** A quarter. */
export const DEFAULT_SHARE = 25;

/**
 * Whole per cent from 0 (nothing but the ten that are never too many) to 100 (everything); undefined for anything else.
 */
export function parseShare(text: string): number | undefined {
  const [, digits] = /^([0-9]{1,3})%$/.exec(text) ?? [];
  const share = digits === undefined ? undefined : Number(digits);
  return share === undefined || share > 100 ? undefined : share;
}

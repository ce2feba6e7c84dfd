// How long is a text, as Kubernetes counts, and may it stand where people read it?

/** Whether a text has at most so many characters as Kubernetes counts them: code points, of which there are never more than UTF-16 units. */
export const isWithin = (max: number, value: string): boolean =>
  value.length <= max || (value.length <= 2 * max && [...value].length <= max);

export const FREE_TEXT = /^[^\p{Z}\p{C}]([^\p{Cc}\p{Zl}\p{Zp}]*[^\p{Z}\p{C}])?$/u;
export const LONGEST_FREE_TEXT = 256;

/** What the schema `FreeText` says: for texts that no schema reads. */
export const isFreeText = (text: string): boolean => isWithin(LONGEST_FREE_TEXT, text) && FREE_TEXT.test(text);

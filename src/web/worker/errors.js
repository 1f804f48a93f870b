// Errors in words.

/** An error with a message for users. */
export class UserError extends Error {}

const MEMORY = /bad_alloc|out of memory|\bOOM\b|allocation failed|memory access out of bounds|Aborted\(/i;

/**
 * @param {Error} error of the search, or of loading a model
 * @param {string} model its name
 * @returns {{message: string, lost: boolean}} lost: the worker cannot go on
 */
export function inWords(error, model) {
  if (error instanceof UserError) return { message: error.message, lost: false };
  const text = String(error?.message ?? error);
  if (error instanceof RangeError || MEMORY.test(text)) {
    return {
      message: `The browser does not have enough memory for ${model}; close other tabs, or use a smaller beam or model.`,
      lost: true,
    };
  }
  return { message: `${model} failed: ${text.slice(0, 300)}`, lost: true };
}

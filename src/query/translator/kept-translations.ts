import { LRUCache } from "lru-cache";
import type { KqlNames, KqlTranslation } from "../kql/contract.ts";
import type { Translator } from "./translator.ts";

/** Of translations that are kept, and as many of names. */
const MAX_KEPT_CHARS = 8 * 1024 * 1024;
const MAX_ENTRY_CHARS = MAX_KEPT_CHARS / 16;

/**
 * A translator whose process is not asked twice for what is asked again and again, as dashboards do. A translation is
 * found by all that it was made of: the text, and the tables as they are. One that the moment is in is made anew.
 */
export function keepTranslations(translator: Translator): Translator {
  const limits = { maxSize: MAX_KEPT_CHARS, maxEntrySize: MAX_ENTRY_CHARS };
  const translations = new LRUCache<string, KqlTranslation>({
    ...limits,
    sizeCalculation: ({ sql }, key) => sql.length + key.length,
  });
  const namesOf = new LRUCache<string, KqlNames>({
    ...limits,
    sizeCalculation: ({ tables }, text) => text.length + tables.join().length + 1,
  });
  return {
    names: async (text, bounds) => {
      const known = namesOf.get(text);
      if (known !== undefined) return known;
      const names = await translator.names(text, bounds);
      namesOf.set(text, names);
      return names;
    },
    translate: async (request, bounds) => {
      const { nowNs: _nowNs, ...timeless } = request;
      const key = JSON.stringify(timeless);
      const known = translations.get(key);
      if (known !== undefined) return known;
      const translation = await translator.translate(request, bounds);
      if (translation.kind === "query" && translation.readsNow !== true) translations.set(key, translation);
      return translation;
    },
    warm: () => translator.warm(),
    pid: () => translator.pid(),
    close: () => translator.close(),
  };
}

const PREFIX = "engine.";

/** What the browser keeps for this server, as text. A browser that keeps nothing (private windows) changes nothing else. */
export const storage = storageIn(() => localStorage);

/** The same, for this tab alone: the next page of the tab finds it. */
export const tabStorage = storageIn(() => sessionStorage);

type TextStorage = { get(name: string): string | undefined; set(name: string, value: string | undefined): void };

/** The storage is reached anew each time, because that alone throws where it is switched off. */
function storageIn(place: () => Storage): TextStorage {
  return {
    get(name) {
      try {
        return place().getItem(PREFIX + name) ?? undefined;
      } catch {
        return undefined;
      }
    },
    set(name, value) {
      try {
        if (value === undefined) place().removeItem(PREFIX + name);
        else place().setItem(PREFIX + name, value);
      } catch {
        // Full, or switched off: the choice holds until the page is closed.
      }
    },
  };
}

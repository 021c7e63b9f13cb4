import { useEffect, useState } from "preact/hooks";

/** As in the styles of the pages: there is room for one column. */
const NARROW = "(max-width: 50rem)";

/** Whether the window is as narrow as a telephone; changes with it. */
export function useIsNarrow(): boolean {
  const [isNarrow, setNarrow] = useState(() => matchMedia(NARROW).matches);
  useEffect(() => {
    const query = matchMedia(NARROW);
    const read = () => setNarrow(query.matches);
    query.addEventListener("change", read);
    return () => query.removeEventListener("change", read);
  }, []);
  return isNarrow;
}

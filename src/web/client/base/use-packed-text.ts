import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { packText, unpackText } from "./packed-text.ts";

/**
 * A long text of the page in the address's fragment, as `#name=…`. Undefined until it is read. A change is written in the
 * place of the one before; `isNew` makes an entry of its own in the history.
 */
export function usePackedText(
  name: string,
  byDefault: string,
): [string | undefined, (text: string, isNew?: boolean) => void] {
  const [text, setText] = useState<string | undefined>();
  const last = useRef<string | undefined>(undefined);
  const writes = useRef(0);
  useEffect(() => {
    const read = () => {
      const packed = fragmentParams().get(name) ?? undefined;
      if (packed !== undefined && packed === last.current) return;
      last.current = packed;
      if (packed === undefined) setText(byDefault);
      else void unpackText(packed).then((unpacked) => setText(unpacked ?? byDefault));
    };
    read();
    addEventListener("hashchange", read);
    addEventListener("popstate", read);
    return () => {
      removeEventListener("hashchange", read);
      removeEventListener("popstate", read);
    };
  }, [name, byDefault]);
  // A text that is still being packed must not reach the address of the next page.
  useEffect(() => () => void writes.current++, []);
  const write = useCallback(
    (next: string, isNew = false) => {
      setText(next);
      const turn = ++writes.current;
      void packText(next).then((packed) => {
        // A long text takes longer than the short one that came after it.
        if (turn !== writes.current) return;
        const params = fragmentParams();
        last.current = next === byDefault ? undefined : packed;
        if (next === byDefault) params.delete(name);
        else params.set(name, packed);
        const fragment = params.toString();
        const address = location.pathname + location.search + (fragment === "" ? "" : `#${fragment}`);
        if (isNew) history.pushState(history.state, "", address);
        else history.replaceState(history.state, "", address);
      });
    },
    [name, byDefault],
  );
  return [text, write];
}

function fragmentParams(): URLSearchParams {
  return new URLSearchParams(location.hash.slice(1));
}

import { useEffect, useState } from "preact/hooks";

/** A place in the console: the part of the address after `#`, as a path and parameters. */
export interface Place {
  readonly path: readonly string[];
  readonly parameters: URLSearchParams;
}

function parse(hash: string): Place {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?", 2);
  const parts = path.split("/").filter(Boolean).map(decode);
  return { path: parts, parameters: new URLSearchParams(query) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a place. Parameters that are empty or undefined are left out. */
export function link(path: readonly string[], parameters: Record<string, string | undefined> = {}): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value) query.set(name, value);
  const text = query.toString();
  return `#/${path.map(encodeURIComponent).join("/")}${text && `?${text}`}`;
}

/** The present place; the component is rendered again when it changes. */
export function usePlace(): Place {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const update = () => setHash(location.hash);
    addEventListener("hashchange", update);
    return () => removeEventListener("hashchange", update);
  }, []);
  return parse(hash);
}

/**
 * A parameter of the address as state, so that every view has a link.
 *
 * @returns the value, or `otherwise` where the address has none; and a function that sets it without a new entry in the
 *   browser's history
 */
export function useParameter(name: string, otherwise = ""): [string, (value: string) => void] {
  const { parameters } = usePlace();
  const set = (value: string) => {
    const place = parse(location.hash);
    const all = Object.fromEntries(place.parameters);
    all[name] = value === otherwise ? "" : value;
    history.replaceState(null, "", link(place.path, all));
    dispatchEvent(new HashChangeEvent("hashchange"));
  };
  return [parameters.get(name) ?? otherwise, set];
}

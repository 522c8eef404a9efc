// The page of methods, from the OpenAPI document of the server that sends it.

const REFERENCE = "#/components/schemas/";

/** An element with attributes and children; a child that is a text stays a text. */
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function paragraphs(text) {
  return (text ?? "").split("\n\n").map((each) => element("p", {}, each));
}

/** What a schema takes, in words. */
function typeOf(schema) {
  if (schema.$ref) {
    return schema.$ref.replace(REFERENCE, "");
  }
  if (schema.type === "array") {
    return `list of ${typeOf(schema.items)}`;
  }
  if (schema.additionalProperties) {
    return `map to ${typeOf(schema.additionalProperties)}`;
  }
  return schema.enum ? schema.enum.join(", ") : (schema.format ?? schema.type);
}

/** A table of names, types and meanings. */
function table(caption, rows) {
  if (rows.length === 0) {
    return null;
  }
  const cells = ([name, type, meaning]) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, element("code", {}, name)),
      element("td", {}, type),
      element("td", {}, meaning ?? ""),
    );
  const head = ["name", "type", "meaning"].map((each) => element("th", { scope: "col" }, each));
  return element(
    "table",
    {},
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, ...head)),
    element("tbody", {}, ...rows.map(cells)),
  );
}

/** The fields of a message that a body is, or that the lines of a stream hold. */
function fields(content, schemas) {
  const schema = Object.values(content ?? {})[0]?.schema ?? {};
  const message = schema.oneOf ? schema.oneOf[0].properties.result : schema;
  const properties = schemas[typeOf(message)]?.properties ?? {};
  return Object.entries(properties).map(([name, each]) => [name, typeOf(each), each.description]);
}

/** The call of the example by curl. */
function command(verb, path, operation) {
  const parameters = (operation.parameters ?? []).filter((each) => each.example !== undefined);
  let target = path;
  const query = new URLSearchParams();
  for (const each of parameters) {
    if (each.in === "path") {
      target = target.replace(`{${each.name}}`, encodeURI(each.example));
    } else {
      query.append(each.name, each.example);
    }
  }
  const url = `'${location.origin}${target}${query.size > 0 ? `?${query}` : ""}'`;
  const body = Object.values(operation.requestBody?.content ?? {})[0]?.example;
  if (body === undefined) {
    return `curl -sS -X ${verb.toUpperCase()} ${url}`;
  }
  return `curl -sS -d '${JSON.stringify(body, null, 1).replaceAll("'", "'\\''")}' ${url}`;
}

function method(verb, path, operation, schemas) {
  const parameters = (operation.parameters ?? []).map((each) => [each.name, typeOf(each.schema), each.description]);
  return element(
    "details",
    { id: operation.operationId },
    element("summary", {}, element("code", {}, `${verb.toUpperCase()} ${path}`), ` ${operation.summary}`),
    ...paragraphs(operation.description),
    element("pre", { tabindex: "0" }, command(verb, path, operation)),
    table("Parameters", parameters),
    table("Body", fields(operation.requestBody?.content, schemas)),
    table("Reply", fields(operation.responses[200].content, schemas)),
  );
}

const main = document.getElementById("methods");
try {
  const openapi = await (await fetch("./openapi.json")).json();
  main.append(...paragraphs(openapi.info.description));
  const operations = Object.entries(openapi.paths).flatMap(([path, verbs]) =>
    Object.entries(verbs).map(([verb, operation]) => [verb, path, operation]),
  );
  for (const tag of openapi.tags) {
    const methods = operations.filter(([, , operation]) => operation.tags.includes(tag.name));
    main.append(element("h2", {}, tag.name), ...paragraphs(tag.description));
    main.append(...methods.map((each) => method(...each, openapi.components.schemas)));
  }
} catch (error) {
  main.append(element("p", { role: "alert" }, `The OpenAPI document cannot be read: ${error}`));
}

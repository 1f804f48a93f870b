// The server's requests, to read and to try. Its address is docs, without a slash at the end: works below any path.
SwaggerUIBundle({ dom_id: '#requests', url: 'openapi.json', validatorUrl: null });

-- Whether a role exists, and whether it could do everything.
SELECT rolsuper OR rolcreaterole OR rolbypassrls
  FROM pg_roles
 WHERE rolname = %(name)s;

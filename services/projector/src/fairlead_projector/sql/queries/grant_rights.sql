-- Gives the roles of the services their rights, where these roles exist. The owner of the tables runs it.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'fairlead_projector') THEN
        GRANT USAGE ON SCHEMA projection TO fairlead_projector;
        GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA projection TO fairlead_projector;
        GRANT SELECT ON public.fairlead_migration TO fairlead_projector;
    END IF;
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'fairlead_gateway') THEN
        GRANT USAGE ON SCHEMA read TO fairlead_gateway;
        GRANT SELECT ON ALL TABLES IN SCHEMA read TO fairlead_gateway;
    END IF;
END $$;
